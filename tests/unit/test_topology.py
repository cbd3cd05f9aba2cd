"""The broker's definitions give each party its own exchange and its own queues, and nothing else (M3)."""

import base64
import hashlib
import re
from typing import Any

import pytest

from placet.contracts.catalogue import CATALOGUE, OUTSIDE, REPLY_SLOTS, SERVICES, Route, asks
from placet.contracts.topology import definitions, derived_salt, password_hash

MADE = definitions()
PARTIES = (*SERVICES, *OUTSIDE)
BOUND = {(binding["source"], binding["routing_key"], binding["destination"]) for binding in MADE["bindings"]}
EXCHANGES = {made["name"]: made for made in MADE["exchanges"]}
QUEUES = {queue["name"]: queue for queue in MADE["queues"]}
PERMISSIONS = {permission["user"]: permission for permission in MADE["permissions"]}


def allowed(user: str, verb: str) -> set[str]:
    """The exchanges and queues that a user may use this way; the broker calls the default exchange `amq.default`."""
    names = {*EXCHANGES, *QUEUES, "amq.default", "amq.topic", ""}
    return {name for name in names if re.search(PERMISSIONS[user][verb], name)}


def policies_of(queue: str) -> list[dict[str, Any]]:
    return [policy["definition"] for policy in MADE["policies"] if re.search(policy["pattern"], queue)]


@pytest.mark.req("M3")
@pytest.mark.parametrize("route", CATALOGUE, ids=lambda route: route.wire)
def test_a_route_is_bound_from_its_publisher_to_each_consumer(route: Route) -> None:
    for consumer in route.consumers:
        source = f"placet.{route.publisher}"
        if route.kind == "reply":
            assert (source, f"reply.{consumer}.0", f"placet.{consumer}.reply.0") in BOUND
        else:
            queue = "requests" if route.kind == "request" else "in"
            assert (source, route.wire, f"placet.{consumer}.{queue}") in BOUND


@pytest.mark.req("M3")
def test_nothing_is_bound_that_the_catalogue_does_not_name() -> None:
    said = {(f"placet.{route.publisher}", route.wire) for route in CATALOGUE}
    for source, key, _ in BOUND:
        ours = source == "placet.dlx" or key == "dead.executor" or key.startswith("reply.")
        assert ours or (source, key) in said


@pytest.mark.req("M3")
@pytest.mark.parametrize("user", PARTIES)
def test_a_user_writes_to_its_own_exchange_only(user: str) -> None:
    assert allowed(user, "write") == {f"placet.{user}"}


@pytest.mark.req("M3")
@pytest.mark.parametrize("user", PARTIES)
def test_a_user_configures_nothing_that_has_a_name(user: str) -> None:
    assert allowed(user, "configure") == {""}


@pytest.mark.req("M3")
@pytest.mark.parametrize("user", PARTIES)
def test_a_user_reads_all_of_its_own_queues_and_no_others(user: str) -> None:
    assert allowed(user, "read") == {name for name in QUEUES if name.startswith(f"placet.{user}.")}


@pytest.mark.req("M3")
def test_a_planner_cannot_reach_who_waits_for_a_decision() -> None:
    reached = {(key, queue) for source, key, queue in BOUND if source == "placet.planner"}
    assert not any(key.startswith(("permission.", "decision.", "reply.")) for key, _ in reached)


@pytest.mark.req("M3")
def test_there_is_no_administrator_and_no_guest() -> None:
    assert {user["name"] for user in MADE["users"]} == set(PARTIES)
    assert all(user["tags"] == "" for user in MADE["users"])


@pytest.mark.req("M4")
@pytest.mark.parametrize("name", [name for name in QUEUES if name.endswith(".in")])
def test_an_inbox_has_a_bound_queue_of_dead_letters(name: str) -> None:
    arguments = QUEUES[name]["arguments"]
    dead = name.removesuffix(".in") + ".dead"
    assert (arguments["x-dead-letter-exchange"], arguments["x-dead-letter-routing-key"], dead) in BOUND
    assert QUEUES[dead]["arguments"] == {"x-queue-type": "quorum"}


@pytest.mark.req("M4")
def test_b39_only_events_have_dead_letters_for_questions_are_asked_again_and_dead_letters_stay() -> None:
    """What cannot be read or handled is parked from every queue. Rejected is only what could not be parked either."""
    without = {name.split(".")[2] for name, queue in QUEUES.items() if "x-dead-letter-exchange" not in queue["arguments"]}
    assert without == {"dead", "requests", "reply"}
    assert all("dead-letter-exchange" not in policy for name in QUEUES for policy in policies_of(name))
    assert {route.kind for route in CATALOGUE if bound_to(route) - {"in"}} == {"request", "reply"}


def bound_to(route: Route) -> set[str]:
    """The kinds of queue that a message gets into; a reply goes by the key of the question."""
    if route.kind == "reply":
        return {"reply"}
    return {
        queue.split(".")[2] for source, key, queue in BOUND if (source, key) == (f"placet.{route.publisher}", route.wire)
    }


@pytest.mark.req("M4")
def test_clients_cannot_publish_to_the_dead_letter_exchange() -> None:
    assert [name for name, made in EXCHANGES.items() if made["internal"]] == ["placet.dlx"]


@pytest.mark.req("M4")
def test_the_executor_can_park_what_it_cannot_read_among_its_own_dead_letters() -> None:
    assert [bound for bound in BOUND if bound[1] == "dead.executor"] == [
        ("placet.executor", "dead.executor", "placet.executor.dead")
    ]


@pytest.mark.req("M4")
def test_one_policy_holds_for_an_inbox_and_another_for_dead_letters() -> None:
    (inbox,) = policies_of("placet.admission.in")
    assert inbox["delivery-limit"] == 20
    assert inbox["dead-letter-strategy"] == "at-least-once"
    assert inbox["overflow"] == "reject-publish"
    (dead,) = policies_of("placet.admission.dead")
    assert dead == {"delivery-limit": 1_000_000}
    assert policies_of("placet.admission.requests") == []


@pytest.mark.req("M2")
def test_everything_is_durable_and_events_wait_in_quorum_queues() -> None:
    assert all(made["durable"] and not made["auto_delete"] for made in (*QUEUES.values(), *EXCHANGES.values()))
    kinds = {name.split(".")[2]: queue["arguments"]["x-queue-type"] for name, queue in QUEUES.items()}
    assert kinds == {"in": "quorum", "dead": "quorum", "requests": "classic", "reply": "classic"}


@pytest.mark.req("M3", "M6")
@pytest.mark.parametrize("route", [route for route in CATALOGUE if route.reply], ids=lambda route: route.wire)
def test_every_reply_slot_is_bound_on_the_exchange_of_who_answers(route: Route) -> None:
    asker = route.publisher
    assert asks(asker)
    for answerer in route.consumers:
        for slot in range(REPLY_SLOTS):
            assert (f"placet.{answerer}", f"reply.{asker}.{slot}", f"placet.{asker}.reply.{slot}") in BOUND


@pytest.mark.req("M3")
def test_a_reply_queue_hears_only_those_that_its_service_asks() -> None:
    asked = {(route.publisher, answerer) for route in CATALOGUE if route.reply for answerer in route.consumers}
    heard = {(queue.split(".")[1], source.removeprefix("placet.")) for source, key, queue in BOUND if key[:6] == "reply."}
    assert heard == asked


def test_a_binding_joins_what_exists_and_stands_once() -> None:
    assert {source for source, _, _ in BOUND} <= EXCHANGES.keys()
    assert {queue for _, _, queue in BOUND} <= QUEUES.keys()
    assert len(BOUND) == len(MADE["bindings"])


def test_generating_again_changes_nothing() -> None:
    assert definitions() == MADE


def test_a_password_is_hashed_as_the_broker_does_it() -> None:
    raw = base64.b64decode(password_hash("secret", b"salt"))
    assert raw == b"salt" + hashlib.sha256(b"saltsecret").digest()
    assert len(derived_salt("planner")) == 4
    assert derived_salt("planner") != derived_salt("ingress")


def test_a_prefix_names_the_users_and_leaves_the_exchanges() -> None:
    made = definitions(vhost="other", user_prefix="blue-", password_of=lambda user: f"{user}!")
    planner = next(user for user in made["users"] if user["name"] == "blue-planner")
    assert planner["password_hash"] == password_hash("blue-planner!", derived_salt("blue-planner"))
    assert {row["user"]: row["write"] for row in made["permissions"]}["blue-planner"] == r"^placet\.planner$"
    rows = (*made["permissions"], *made["queues"], *made["exchanges"], *made["bindings"], *made["policies"])
    assert {row["vhost"] for row in rows} == {"other"}
