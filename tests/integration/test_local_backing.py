"""The launcher of the backing services: it gives what works, says what does not, and leaves nothing behind."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from functools import partial
from pathlib import Path

import aio_pika
import asyncpg
import pytest

from placet.local import logins
from placet.local.addresses import credentials, vhost_url
from placet.local.backing import Backing, backing
from placet.local.broker_admin import Definitions
from placet.local.errors import BackingError, NotThisWay
from placet.local.private import PrivatePostgres, PrivateRabbitMQ, guard

DEFINITIONS: Definitions = {
    "users": [{"name": "clerk", "password": "secret", "tags": ""}],
    "vhosts": [{"name": "office/1"}],
    "permissions": [{"user": "clerk", "vhost": "office/1", "configure": "", "write": ".*", "read": ".*"}],
    "queues": [{"name": "letters", "vhost": "office/1", "durable": True, "auto_delete": False, "arguments": {}}],
}

LAUNCHER = """
from placet.local.backing import backing
with backing("private"):
    print("ready", flush=True)
    input()
"""


def test_private_mode_gives_three_services_that_work() -> None:
    with backing("private") as services:
        logins.log_in_to_postgres(services.postgres_url)
        logins.log_in_to_redis(services.redis_url)
        clerk = vhost_url(services.amqp_url, "office/1", "clerk", "secret")

        services.broker.import_definitions(DEFINITIONS)
        logins.log_in_to_rabbitmq(clerk, queue="letters")

        services.broker.delete(["office/1", "never made"], ["clerk", "never made"])
        with pytest.raises(NotThisWay):
            logins.log_in_to_rabbitmq(clerk)


@pytest.mark.parametrize(
    ("variable", "url"),
    [
        ("PLACET_AMQP_URL", "amqp://guest:guest@127.0.0.1:1"),
        ("PLACET_POSTGRES_URL", "postgresql://postgres@127.0.0.1:1/postgres"),
        ("PLACET_REDIS_URL", "redis://127.0.0.1:1/0"),
        ("PLACET_REDIS_URL", "not a URL"),
    ],
)
def test_a_given_url_that_does_not_work_is_an_error_that_names_its_variable(
    variable: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, url)
    with pytest.raises(BackingError, match=variable), backing("given"):
        pass


def test_an_unknown_mode_is_an_error_that_lists_the_modes() -> None:
    with pytest.raises(BackingError, match="private"), backing("magic"):
        pass


def test_a_vhost_that_is_not_there_is_said_in_plain_words(backing: Backing) -> None:
    nowhere = vhost_url(backing.amqp_url, "no/where", *credentials(backing.amqp_url))
    with pytest.raises(NotThisWay, match="does not open the vhost 'no/where' to"):
        logins.log_in_to_rabbitmq(nowhere)


def test_nothing_is_left_when_the_launcher_is_killed(open_folder: Path) -> None:
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER],
        env={**os.environ, "TMPDIR": str(open_folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with launcher:
        assert launcher.stdout
        assert launcher.stdout.readline() == b"ready\n"
        started = guard.family(launcher.pid)
        assert len(started) > 10
        launcher.send_signal(signal.SIGKILL)

    def nothing_is_left() -> None:
        if left := [*(started & guard.alive().keys()), *open_folder.iterdir()]:
            raise NotThisWay(f"still there: {left}")

    logins.until(nothing_is_left, within=15, what="the guard ends everything")


async def test_a_private_broker_keeps_its_messages_over_a_kill() -> None:
    with PrivateRabbitMQ.owned() as broker:
        await publish(broker, "kept", b"a letter")
        broker.kill()
        broker.start()
        assert await take(broker, "kept") == b"a letter"


async def test_a_private_database_keeps_its_commits_over_a_kill() -> None:
    with PrivatePostgres.owned() as database:
        await execute(database, "CREATE TABLE note (text text)")
        await execute(database, "INSERT INTO note VALUES ('kept')")
        database.restart()
        connection = await asyncpg.connect(database.url)
        assert await connection.fetchval("SELECT text FROM note") == "kept"
        await connection.close()


async def test_a_paused_database_answers_nobody_until_it_is_resumed() -> None:
    with PrivatePostgres.owned() as database:
        database.pause()
        with pytest.raises(TimeoutError):
            await asyncpg.connect(database.url, timeout=0.5)
        database.resume()
        database.log_in()


def test_who_is_stopped_runs_no_more_when_it_is_said_even_on_a_busy_machine() -> None:
    busy = "for i in 1 2 3 4 5 6 7 8; do (while :; do :; done) & done; echo started; wait"
    with subprocess.Popen(["sh", "-c", busy], stdout=subprocess.PIPE, start_new_session=True) as leader:
        assert leader.stdout
        try:
            assert leader.stdout.readline() == b"started\n"
            for _ in range(20):
                guard.stop_family(leader.pid)
                assert {state for pid in guard.family(leader.pid) for state in guard.states(pid)} == {"T"}
                guard.signal_family(leader.pid, signal.SIGCONT)
        finally:
            guard.kill_family(leader.pid)


def test_who_was_told_to_stop_and_goes_on_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "STILL", 0.0)

    def running(_pid: int) -> set[str]:
        return {"R"}

    monkeypatch.setattr(guard, "states", running)
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as sleeper:
        try:
            with pytest.raises(TimeoutError, match=f"process {sleeper.pid} .* goes on"):
                guard.stop_family(sleeper.pid)
        finally:
            guard.kill_family(sleeper.pid)


@pytest.fixture
def open_folder() -> Generator[Path]:
    """A folder that the account of the servers may enter too, which pytest's own is not when root runs it."""
    folder = Path(tempfile.mkdtemp(prefix="test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


async def publish(broker: PrivateRabbitMQ, queue: str, body: bytes) -> None:
    """Publish with confirmation to a new quorum queue that is already safe from a kill."""
    async with await aio_pika.connect(broker.url) as connection:
        channel = await connection.channel()
        await channel.declare_queue(queue, durable=True, arguments={"x-queue-type": "quorum"})
        await asyncio.to_thread(
            logins.until, partial(held, broker, queue), within=15, what="the broker has the queue on its disk"
        )
        message = aio_pika.Message(body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await channel.default_exchange.publish(message, routing_key=queue)


def held(broker: PrivateRabbitMQ, queue: str) -> None:
    if not broker.holds_on_disk("/", queue):
        raise NotThisWay("not yet")


async def take(broker: PrivateRabbitMQ, queue: str) -> bytes:
    async with await aio_pika.connect(broker.url) as connection:
        channel = await connection.channel()
        async with (await channel.get_queue(queue)).iterator(timeout=15) as messages:
            async for message in messages:
                await message.ack()
                return message.body
    raise AssertionError("no message")


async def execute(database: PrivatePostgres, statement: str) -> None:
    connection = await asyncpg.connect(database.url)
    await connection.execute(statement)
    await connection.close()
