"""A broker that takes the connection and says nothing: nobody waits for it for ever, or cannot be ended for it."""

import asyncio
import signal
import socket
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path

import pytest
from aiormq.exceptions import AMQPError

from placet.contracts.commands import CommandReady, ResourceResolve
from placet.local.processes import Process, service_command
from placet.messaging import BrokerParking, Consumer, Publisher, Requester, line
from placet.messaging import consumer as consuming
from placet.testing import wait_until
from stations import Heard


@pytest.fixture
def silent() -> Generator[socket.socket]:
    """It listens, and reads nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        yield listener


def url(silent: socket.socket, user: str) -> str:
    return f"amqp://{user}:word@127.0.0.1:{silent.getsockname()[1]}/v"


@pytest.mark.req("M5")
@pytest.mark.parametrize("kind", [Publisher, partial(Requester, user_prefix="")], ids=["publisher", "requester"])
async def test_a_connection_that_gets_no_answer_is_given_up(
    kind: Callable[[str, str], Publisher | Requester], silent: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "CONNECT_SECONDS", 0.2)
    with pytest.raises(TimeoutError):
        await kind("executor", url(silent, "executor")).start()


@pytest.mark.req("M5")
async def test_a_broker_of_amqps_is_spoken_to_in_tls(silent: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line chooses its transport itself."""
    monkeypatch.setattr(line, "CONNECT_SECONDS", 2.0)
    kept: list[socket.socket] = []
    starting = asyncio.create_task(Publisher("executor", url(silent, "executor").replace("amqp", "amqps", 1)).start())
    await wait_until(partial(connected, silent, kept), "the publisher has connected")
    assert await asyncio.get_running_loop().sock_recv(kept[0], 3) == b"\x16\x03\x01", "a ClientHello (RFC 8446, 5.1)"
    kept[0].close()
    with pytest.raises((AMQPError, OSError)):
        await starting


@pytest.mark.req("M5")
async def test_a_consumer_that_is_cut_short_leaves_no_attempt(
    silent: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that tried on for ever would keep the process from ending."""
    monkeypatch.setattr(consuming, "CONNECT_SECONDS", 0.5)
    publisher = Publisher("executor", url(silent, "executor"))
    consumer = Consumer(
        "executor",
        url(silent, "executor"),
        parking=BrokerParking("executor", publisher),
        publisher=publisher,
        prefetch=1,
        user_prefix="",
    )
    for kind in (CommandReady, ResourceResolve):
        consumer.on(kind, Heard().note)
    before = asyncio.all_tasks()
    starting, kept = asyncio.create_task(consumer.start()), list[socket.socket]()
    await wait_until(partial(connected, silent, kept), "the consumer waits for its broker")
    starting.cancel()
    with kept[0], pytest.raises(asyncio.CancelledError):
        await starting
    assert not [task for task in asyncio.all_tasks() - before if "RobustConnection" in repr(task)]


async def connected(silent: socket.socket, kept: list[socket.socket]) -> bool:
    """Whether somebody has connected; the connection stays."""
    try:
        kept.append(silent.accept()[0])
        kept[-1].setblocking(False)
    except BlockingIOError:
        return False
    return True


@pytest.mark.req("O5")
async def test_a_service_that_waits_for_its_broker_ends_when_it_is_asked_to(silent: socket.socket, tmp_path: Path) -> None:
    environment = {
        "PLACET_AMQP_URL": url(silent, "executor"),
        "PLACET_CRM_URL": "http://crm.example",
        "PLACET_CRM_TOKEN": "w",
    }
    service = Process("executor", service_command("executor"), environment, tmp_path / "executor.log")
    kept: list[socket.socket] = []
    try:
        await wait_until(partial(connected, silent, kept), "the service waits for its broker", within=60)
        service.signal(signal.SIGTERM)
        assert await service.ended(60) == 0
    finally:
        service.kill()
        for connection in kept:
            connection.close()
