"""How vhosts, users and topology are made on a broker: over its management API, or with `rabbitmqctl`."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

import httpx2

from placet.local.addresses import broker_port, credentials, is_of_this_machine, management_url, vhost_url
from placet.local.errors import BackingError, NotThisWay
from placet.local.logins import log_in_to_rabbitmq, until

Definitions = Mapping[str, Any]
"""RabbitMQ's definitions as in its JSON file: users, vhosts, permissions, exchanges, queues, bindings, policies."""

IN_FORCE_WITHIN = 30.0
"""Seconds that imported definitions may take to show."""

COMMAND_WITHIN = 60.0


class BrokerAdmin(Protocol):
    """The power over one broker."""

    def import_definitions(self, definitions: Definitions) -> None:
        """Add the definitions to what the broker has; return when they are in force.

        Raises `BackingError` when the broker refuses them or does not show them within 30 seconds.
        """
        ...

    def delete(self, vhosts: Sequence[str], users: Sequence[str]) -> None:
        """Remove vhosts with all that is in them, and users. Those that are gone already are not missed."""
        ...

    def unacknowledged(self, vhost: str) -> dict[str, int]:
        """Deliveries that no consumer has acknowledged yet, by queue; queues without any are left out.

        The management API's figures are up to ten seconds old; those of `rabbitmqctl` are not.
        """
        ...


class ManagementApi:
    """The broker's HTTP API. `url` holds the administrator's name and password; `amqp_url` is the same broker."""

    def __init__(self, url: str, amqp_url: str) -> None:
        self.url, self._amqp_url = url, amqp_url

    def log_in(self) -> None:
        """Raises `NotThisWay` when there is no such API, or it does not take the login for an administrator's."""
        try:
            self._call("GET", "users")
        except BackingError as error:
            raise NotThisWay(str(error)) from error

    def import_definitions(self, definitions: Definitions) -> None:
        self._call("POST", "definitions", definitions)
        await_in_force(self._amqp_url, definitions)

    def delete(self, vhosts: Sequence[str], users: Sequence[str]) -> None:
        for kind, names in (("vhosts", vhosts), ("users", users)):
            for name in names:
                self._call("DELETE", f"{kind}/{quote(name, safe='')}", missing_is_fine=True)

    def unacknowledged(self, vhost: str) -> dict[str, int]:
        figures = until(partial(self._figures, vhost), within=IN_FORCE_WITHIN, what=f"no figures of {vhost}")
        return {name: count for name, count in figures.items() if count}

    def _figures(self, vhost: str) -> dict[str, int]:
        """The API has none of a new queue until the broker has counted, which it does every few seconds."""
        queues = self._call("GET", f"queues/{quote(vhost, safe='')}").json()
        if missing := [queue["name"] for queue in queues if "messages_unacknowledged" not in queue]:
            raise NotThisWay(f"the broker has not counted {missing[0]} yet")
        return {queue["name"]: queue["messages_unacknowledged"] for queue in queues}

    def _call(
        self, method: str, path: str, body: Definitions | None = None, *, missing_is_fine: bool = False
    ) -> httpx2.Response:
        try:
            # Not the machine's proxy settings: the broker is near.
            with httpx2.Client(timeout=COMMAND_WITHIN, trust_env=False) as client:
                response = client.request(method, f"{self.url}/api/{path}", json=body)
        except httpx2.HTTPError as error:
            raise BackingError(f"RabbitMQ's management API does not answer: {error}") from error
        if response.is_error and not (missing_is_fine and response.status_code == 404):
            raise BackingError(f"RabbitMQ refused {method} {path}: {response.status_code} {response.text[:400]}")
        return response


class RabbitmqCtl:
    """`rabbitmqctl` on the broker's own machine, as somebody it obeys. A call takes about a second."""

    def __init__(self, amqp_url: str, command: str) -> None:
        self._amqp_url, self._command = amqp_url, command

    @classmethod
    def of_this_machine(cls, amqp_url: str) -> "RabbitmqCtl":
        """The machine's own `rabbitmqctl`. Raises `NotThisWay` when there is none, or the broker is elsewhere."""
        if not is_of_this_machine(amqp_url):
            raise NotThisWay("rabbitmqctl reaches only the broker of this machine")
        path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
        if command := shutil.which("rabbitmqctl", path=path):
            return cls(amqp_url, command)
        raise NotThisWay("there is no rabbitmqctl here")

    def log_in(self) -> None:
        """Raises `NotThisWay` when it does not obey us, or obeys for another broker than `amqp_url`."""
        try:
            status = json.loads(self._call("status", "--formatter", "json"))
        except BackingError as error:
            raise NotThisWay(str(error)) from error
        port = broker_port(self._amqp_url)
        if port not in [listener["port"] for listener in status["listeners"]]:
            raise NotThisWay(f"rabbitmqctl speaks to another broker than the one on port {port}")

    def import_definitions(self, definitions: Definitions) -> None:
        # Through standard input, so that no password lies in a file.
        self._call("import_definitions", text=json.dumps(definitions))
        await_in_force(self._amqp_url, definitions)

    def delete(self, vhosts: Sequence[str], users: Sequence[str]) -> None:
        # One call for all, because each costs a second.
        self._call("eval", f"{_each('rabbit_vhost:delete', vhosts)}, {_each(DELETE_USER, users)}, ok.")

    def unacknowledged(self, vhost: str) -> dict[str, int]:
        listed = self._call("list_queues", "-p", vhost, "name", "messages_unacknowledged", "--formatter", "json")
        return {
            queue["name"]: queue["messages_unacknowledged"]
            for queue in json.loads(listed)
            if queue["messages_unacknowledged"]
        }

    def _call(self, *arguments: str, text: str = "") -> str:
        try:
            done = subprocess.run(
                [self._command, "-q", *arguments], input=text, capture_output=True, text=True, timeout=COMMAND_WITHIN
            )
        except subprocess.TimeoutExpired as error:
            raise BackingError(f"rabbitmqctl {arguments[0]} took more than {COMMAND_WITHIN:g} s") from error
        if done.returncode:
            raise BackingError(f"rabbitmqctl {arguments[0]} failed: {(done.stderr or done.stdout).strip()[-400:]}")
        return done.stdout


DELETE_USER = "rabbit_auth_backend_internal:delete_user"


def _each(function: str, names: Sequence[str]) -> str:
    """Erlang that calls the function with each name and goes on when one is refused."""
    binaries = ", ".join(f"<<{json.dumps(name, ensure_ascii=False)}/utf8>>" for name in names)
    return f'[catch {function}(Name, <<"placet">>) || Name <- [{binaries}]]'


def await_in_force(amqp_url: str, definitions: Definitions) -> None:
    """Return when every vhost can be opened and the last queue is there; the broker starts vhosts by and by.

    It logs in as the users of the definitions, so those who come with a hash instead of a password cannot be tried.
    Raises `BackingError` after 30 seconds.
    """
    logins = _logins(amqp_url, definitions)
    attempts: list[tuple[str, str | None]] = [(url, None) for url in logins.values()]
    for queue in list(definitions.get("queues", []))[-1:]:
        if queue["vhost"] in logins:
            attempts.append((logins[queue["vhost"]], queue["name"]))
    for url, name in attempts:
        until(
            partial(log_in_to_rabbitmq, url, queue=name),
            within=IN_FORCE_WITHIN,
            what=f"definitions are not in force in vhost {urlsplit(url).path}" + (f", queue {name}" if name else ""),
        )


def _logins(amqp_url: str, definitions: Definitions) -> dict[str, str]:
    """For each vhost, the URL of the last user who has permissions in it and whose password is known."""
    passwords = {user["name"]: user["password"] for user in definitions.get("users", []) if user.get("password")}
    name, password = credentials(amqp_url)
    passwords.setdefault(name, password)
    return {
        permission["vhost"]: vhost_url(amqp_url, permission["vhost"], permission["user"], passwords[permission["user"]])
        for permission in definitions.get("permissions", [])
        if permission["user"] in passwords
    }


def administrator_of(amqp_url: str) -> BrokerAdmin:
    """How vhosts and users can be made on the broker behind `amqp_url`.

    Its management API (PLACET_RABBITMQ_MANAGEMENT_URL, or port 15672 with the same login), else this machine's
    `rabbitmqctl`. Raises `NotThisWay` when neither obeys.
    """
    api = os.environ.get("PLACET_RABBITMQ_MANAGEMENT_URL") or management_url(amqp_url)
    refusals: list[str] = []
    for make in (lambda: ManagementApi(api.rstrip("/"), amqp_url), lambda: RabbitmqCtl.of_this_machine(amqp_url)):
        try:
            admin = make()
            admin.log_in()
            return admin
        except NotThisWay as error:
            refusals.append(str(error))
    raise NotThisWay(
        "vhosts and users cannot be made: enable rabbitmq_management (PLACET_RABBITMQ_MANAGEMENT_URL says where), "
        f"or run as root or rabbitmq ({'; '.join(refusals)})"
    )
