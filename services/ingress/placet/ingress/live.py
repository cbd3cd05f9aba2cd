# redis leaves its keyword arguments untyped
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""Streams of events. The events are rows; Redis only wakes who waits for the next one, and may vanish at any time."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from typing import Any

import redis.asyncio as redis
import structlog
from redis.exceptions import RedisError

from placet.ingress.store import Store
from placet.service.logs import first_line
from placet.service.waiting import set_within

log = structlog.get_logger()

GATHER_SECONDS = 0.02
"""How long news gathers before the other instances are told, all in one message."""

PATIENCE_SECONDS = 5.0
"""How long a viewer waits for a wake-up before it looks by itself: so long may news take while Redis is away."""


class Live:
    """Wakes the viewers of a conversation, in every instance."""

    setting = "PLACET_REDIS_URL"

    def __init__(self, url: str, prefix: str) -> None:
        self._url, self._channel = url, f"{prefix}:news"
        self._waiting: dict[str, set[asyncio.Event]] = defaultdict(set)
        self._news: set[str] = set()
        self._telling: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen. Redis being away is no reason not to start. Raises ValueError when the address is none of a Redis."""
        try:
            self._redis = redis.Redis.from_url(self._url, socket_connect_timeout=2, socket_timeout=2)
        except ValueError:
            raise ValueError("this is no URL of a Redis") from None  # the library repeats parts of it: a password, perhaps
        self.running = asyncio.create_task(self._listen())

    async def stop(self) -> None:
        """Close the connections. Of news that is not told by then, viewers of other instances hear when they look."""
        tasks = [task for task in (self.running, self._telling) if task]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._redis.aclose()

    def tell(self, tenant: str, conversation_id: str) -> None:
        """There is news in this conversation. Other instances hear of it together with what else there is just now."""
        name = _name(tenant, conversation_id)
        self._wake(name)
        self._news.add(name)
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell_others())

    async def _tell_others(self) -> None:
        """One message at a time: what there is while a Redis does not answer gathers, and takes no connection of its own."""
        try:
            while self._news:
                await asyncio.sleep(GATHER_SECONDS)
                news, self._news = self._news, set()
                await self._publish("\n".join(news))
        finally:
            self._telling = None

    async def _publish(self, names: str) -> None:
        try:
            await self._redis.publish(self._channel, names)
        except (RedisError, OSError) as error:  # viewers look by themselves when Redis is away
            log.warning("live.unheard", action="live.unheard", error=first_line(error))

    def _wake(self, name: str) -> None:
        for event in self._waiting.get(name, ()):
            event.set()

    async def _listen(self) -> None:
        while True:
            try:
                async with self._redis.pubsub() as pubsub:
                    await pubsub.subscribe(self._channel)
                    while True:
                        message: Any = await pubsub.get_message(ignore_subscribe_messages=True, timeout=1.0)
                        if message is not None:
                            for name in message["data"].decode().split("\n"):
                                self._wake(name)
            except Exception as error:  # whatever it was: viewers must not fall silent for it
                log.warning("live.deaf", action="live.deaf", error=first_line(error))
                await asyncio.sleep(1)

    @contextmanager
    def _listening(self, name: str) -> Generator[asyncio.Event]:
        event = asyncio.Event()
        self._waiting[name].add(event)
        try:
            yield event
        finally:
            self._waiting[name].discard(event)
            if not self._waiting[name]:
                del self._waiting[name]

    async def follow(
        self, store: Store, tenant: str, conversation_id: str, after: int
    ) -> AsyncGenerator[tuple[int, str, str] | None]:
        """Every event behind `after`, once and in order, then each new one; None when a while has passed without any.

        We listen before we read: what comes in between wakes us, so nothing falls into the gap (B01).
        """
        with self._listening(_name(tenant, conversation_id)) as woken:
            while True:
                woken.clear()
                rows = await store.events_after(tenant, conversation_id, after)
                for row in rows:
                    after = row["event_id"]
                    yield after, row["type"], row["data"]
                if not rows and not await set_within(woken, PATIENCE_SECONDS):
                    yield None


def _name(tenant: str, conversation_id: str) -> str:
    return f"{tenant}/{conversation_id}"
