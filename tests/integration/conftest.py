"""Fixtures of the tests of libs/messaging: grounds that are made once, and a station for each test."""

from collections.abc import AsyncGenerator, Generator

import pytest

from grounds import Ground, ground
from placet.local.backing import Backing
from placet.local.private import PrivateRabbitMQ
from stations import Station


@pytest.fixture(scope="session")
async def shared_ground(backing: Backing) -> AsyncGenerator[Ground]:
    """A ground on the broker of the run, which nobody may harm."""
    async with ground(backing.amqp_url, backing.broker, backing.postgres_url) as made:
        yield made


@pytest.fixture
async def station(shared_ground: Ground) -> AsyncGenerator[Station]:
    """A station on the broker of the run."""
    async with Station(shared_ground) as made:
        yield made


@pytest.fixture(scope="session")
def broker() -> Generator[PrivateRabbitMQ]:
    """A broker that tests may kill, freeze and strip of its queues, if they leave it working."""
    with PrivateRabbitMQ.owned() as owned:
        yield owned


@pytest.fixture(scope="module")
async def frail_ground(backing: Backing, broker: PrivateRabbitMQ) -> AsyncGenerator[Ground]:
    """A ground on the private broker, new for each file: a queue that was made again may not survive a kill."""
    async with ground(broker.url, broker.admin, backing.postgres_url) as made:
        yield made


@pytest.fixture
async def frail(frail_ground: Ground) -> AsyncGenerator[Station]:
    """A station on the private broker."""
    async with Station(frail_ground) as made:
        yield made
