"""What the broker itself refuses a service's user, whatever its code has become."""

from collections.abc import Awaitable, Callable

import pytest
from aio_pika import Message
from aio_pika.abc import AbstractChannel
from aiormq.exceptions import ChannelAccessRefused, ChannelPreconditionFailed

from placet.contracts.catalogue import exchange, inbox_queue, reply_key
from placet.contracts.topology import DEAD_LETTERS, PARTIES
from stations import Station

Attempt = Callable[[AbstractChannel, str], Awaitable[object]]


def another(user: str) -> str:
    return PARTIES[(PARTIES.index(user) + 1) % len(PARTIES)]


async def say(channel: AbstractChannel, over: str, key: str) -> None:
    await (await channel.get_exchange(over, ensure=False)).publish(Message(b"{}"), key)


async def say_on_the_default_exchange(channel: AbstractChannel, user: str) -> None:
    await channel.default_exchange.publish(Message(b"{}"), inbox_queue(another(user)))


async def bind_another_inbox(channel: AbstractChannel, user: str) -> None:
    queue = await channel.get_queue(inbox_queue(user), ensure=False)
    await queue.bind(exchange(another(user)), "#")


async def consume_another_inbox(channel: AbstractChannel, user: str) -> None:
    await (await channel.get_queue(inbox_queue(another(user)), ensure=False)).get(no_ack=True, fail=False)


ATTEMPTS: dict[str, Attempt] = {
    "publish on the default exchange": say_on_the_default_exchange,
    "publish on another's exchange": lambda channel, user: say(channel, exchange(another(user)), "permission.decided.v1"),
    "answer for another": lambda channel, user: say(channel, exchange(another(user)), reply_key("admission", 0)),
    "publish a dead letter": lambda channel, user: say(channel, DEAD_LETTERS, another(user)),
    "declare a queue": lambda channel, _: channel.declare_queue("mine", exclusive=True),
    "declare an exchange": lambda channel, _: channel.declare_exchange("mine"),
    "delete its own queue": lambda channel, user: channel.queue_delete(inbox_queue(user)),
    "bind its queue to another's exchange": bind_another_inbox,
    "read another's queue": consume_another_inbox,
}


@pytest.mark.req("M3")
@pytest.mark.parametrize("attempt", ATTEMPTS)
@pytest.mark.parametrize("user", PARTIES)
async def test_a_user_is_refused(user: str, attempt: str, station: Station) -> None:
    channel = await station.channel(user)
    with pytest.raises(ChannelAccessRefused, match="ACCESS_REFUSED"):
        await ATTEMPTS[attempt](channel, user)


@pytest.mark.req("M3")
@pytest.mark.parametrize("user", PARTIES)
async def test_a_user_cannot_say_that_it_is_another(user: str, station: Station) -> None:
    channel = await station.channel(user)
    with pytest.raises(ChannelPreconditionFailed, match="user_id property set to"):
        await station.say(channel, another(user), user, "any.thing.v1", b"{}")


@pytest.mark.req("M3")
async def test_a_copy_header_does_not_leave_the_exchange(station: Station) -> None:
    """CC and BCC route within the exchange that was written to: whoever gets the copy sees where it came from."""
    channel = await station.channel("planner")
    spy = await station.spy("permission")
    headers = {"CC": ["permission.decided.v1"], "BCC": ["permission.decided.v1"]}
    await station.say(channel, "planner", "planner", "tool_call.proposed.v1", b"{}", headers=headers)
    (copy,) = await station.take(inbox_queue("admission"), 1)
    assert copy.exchange == exchange("planner")
    assert await spy.get(no_ack=True, fail=False) is None
