"""Messages that our client library would not send, and whoever may publish can."""

from datetime import UTC, datetime
from typing import ClassVar

from aio_pika.abc import AbstractChannel
from pamqp.commands import Basic

from placet.contracts.catalogue import exchange
from stations import Station

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Nameless(Basic.Properties):
    """Properties without a message id: the client library makes one up where none is."""

    def marshal(self) -> bytes:
        self.message_id = None
        return super().marshal()


class Odd(Basic.Properties):
    """Properties of a message with bytes in them that the client library cannot read."""

    swap: ClassVar[tuple[bytes, bytes]]

    def marshal(self) -> bytes:
        old, new = self.swap
        written = super().marshal()
        assert old in written
        return written.replace(old, new)


class FarTime(Odd):
    """A time beyond every calendar."""

    swap = (int(EPOCH.timestamp()).to_bytes(8), b"\xff" * 8)


class NotText(Odd):
    """A message id that is not UTF-8."""

    swap = (b"m-odd", b"m-\xff\xfe\xfd")


async def say_oddly(
    station: Station, channel: AbstractChannel, user: str, key: str, body: bytes, kind: type[Basic.Properties]
) -> None:
    """Publish with such properties, on the user's own exchange."""
    named = station.ground.run.user_prefix + user
    properties = kind(message_id="m-odd", timestamp=EPOCH, user_id=named, delivery_mode=2)
    underlay = await channel.get_underlay_channel()
    await underlay.basic_publish(body, exchange=exchange(user), routing_key=key, properties=properties)
