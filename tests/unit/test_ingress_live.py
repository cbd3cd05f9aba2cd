"""Telling other instances of news while Redis does not answer: nothing piles up, and the end does not wait for it (M5)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from placet.ingress.live import GATHER_SECONDS, Live
from placet.testing import wait_until


class FrozenRedis:
    """Takes every connection and says nothing."""

    def __init__(self) -> None:
        self.taken: list[asyncio.StreamWriter] = []
        self.url = ""

    async def take(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.taken.append(writer)

    async def is_told(self) -> bool:
        """Besides the connection that listens there is one that tells."""
        return len(self.taken) == 2


@asynccontextmanager
async def frozen_redis() -> AsyncGenerator[FrozenRedis]:
    frozen = FrozenRedis()
    async with await asyncio.start_server(frozen.take, "127.0.0.1", 0) as server:
        frozen.url = f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0"
        yield frozen
        for writer in frozen.taken:
            writer.close()


@pytest.mark.req("M5")
async def test_news_gathers_while_redis_does_not_answer() -> None:
    async with frozen_redis() as redis:
        live = Live(redis.url, "placet")
        await live.start()
        live.tell("t1", "conv_1")
        await wait_until(redis.is_told, "Redis is told of the first news")
        for number in range(2, 12):
            live.tell("t1", f"conv_{number}")
            await asyncio.sleep(1.5 * GATHER_SECONDS)
        await live.stop()
        assert len(redis.taken) == 2
