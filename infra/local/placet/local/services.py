"""The three backing services, and for each the four ways to it."""

import os
from abc import ABC, abstractmethod
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from placet.local import logins, remedies
from placet.local.addresses import without_vhost
from placet.local.broker_admin import BrokerAdmin, ManagementApi, administrator_of
from placet.local.containers import READY_WITHIN, container
from placet.local.errors import NotThisWay
from placet.local.logins import until
from placet.local.private import PrivatePostgres, PrivateRabbitMQ, PrivateRedis


@dataclass(frozen=True)
class Found:
    """A service that has answered a login; for RabbitMQ also how it is administered."""

    url: str
    broker: BrokerAdmin | None = None


class Service(ABC):
    """One backing service. Each way raises `NotThisWay` when it is not open; what it starts ends with the stack.

    `durable` asks for what is started to sync to the disk. RabbitMQ always does.
    """

    name: ClassVar[str]
    variable: ClassVar[str]
    remedy: ClassVar[str]
    """The command that makes the private way open."""

    @abstractmethod
    def given(self, url: str) -> Found:
        """The service at a URL from the environment."""

    @abstractmethod
    def shared(self) -> Found:
        """What listens on the standard port of this machine and takes the default login."""

    @abstractmethod
    def docker(self, stack: ExitStack, *, durable: bool) -> Found:
        """A container of our own."""

    @abstractmethod
    def private(self, stack: ExitStack, *, durable: bool) -> Found:
        """Processes of our own."""


class RabbitMQ(Service):
    name = "rabbitmq"
    variable = "PLACET_AMQP_URL"
    remedy = remedies.RABBITMQ

    def given(self, url: str) -> Found:
        logins.log_in_to_rabbitmq(url)
        broker = without_vhost(url)
        return Found(broker, administrator_of(broker))

    def shared(self) -> Found:
        return self.given("amqp://guest:guest@127.0.0.1:5672")

    def docker(self, stack: ExitStack, *, durable: bool) -> Found:
        image = os.environ.get("RABBITMQ_IMAGE", "rabbitmq:4.3-management")
        addresses = stack.enter_context(container(image, [5672, 15672]))
        url = f"amqp://guest:guest@{addresses[5672]}"
        admin = ManagementApi(f"http://guest:guest@{addresses[15672]}", url)
        for login in (partial(logins.log_in_to_rabbitmq, url), admin.log_in):
            until(login, within=READY_WITHIN, what=f"{image} is not ready")
        return Found(url, admin)

    def private(self, stack: ExitStack, *, durable: bool) -> Found:
        server = stack.enter_context(PrivateRabbitMQ.owned(durable=durable))
        return Found(server.url, server.admin)


class Postgres(Service):
    name = "postgres"
    variable = "PLACET_POSTGRES_URL"
    remedy = remedies.POSTGRES

    def given(self, url: str) -> Found:
        logins.log_in_to_postgres(url)
        return Found(url)

    def shared(self) -> Found:
        # Without a password in the URL, PGPASSWORD counts, for us and for who inherits our environment.
        try:
            return self.given("postgresql://postgres@127.0.0.1:5432/postgres")
        except NotThisWay:
            return self.given("postgresql://postgres:postgres@127.0.0.1:5432/postgres")

    def docker(self, stack: ExitStack, *, durable: bool) -> Found:
        image = os.environ.get("POSTGRES_IMAGE", "postgres:17")
        command = ["postgres", "-c", "max_connections=300", "-c", f"fsync={'on' if durable else 'off'}"]
        trusting = container(image, [5432], environment={"POSTGRES_HOST_AUTH_METHOD": "trust"}, command=command)
        url = f"postgresql://postgres@{stack.enter_context(trusting)[5432]}/postgres"
        return until(partial(self.given, url), within=READY_WITHIN, what=f"{image} is not ready")

    def private(self, stack: ExitStack, *, durable: bool) -> Found:
        return Found(stack.enter_context(PrivatePostgres.owned(durable=durable)).url)


class Redis(Service):
    name = "redis"
    variable = "PLACET_REDIS_URL"
    remedy = remedies.REDIS

    def given(self, url: str) -> Found:
        logins.log_in_to_redis(url)
        return Found(url)

    def shared(self) -> Found:
        return self.given("redis://127.0.0.1:6379/0")

    def docker(self, stack: ExitStack, *, durable: bool) -> Found:
        image = os.environ.get("REDIS_IMAGE", "redis:8")
        command = ["redis-server", "--appendonly", "yes" if durable else "no"]
        url = f"redis://{stack.enter_context(container(image, [6379], command=command))[6379]}/0"
        return until(partial(self.given, url), within=READY_WITHIN, what=f"{image} is not ready")

    def private(self, stack: ExitStack, *, durable: bool) -> Found:
        return Found(stack.enter_context(PrivateRedis.owned(durable=durable)).url)
