"""A system whose clocks are short, for tests that kill it: leases, relays and expiries within seconds."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from placet.local.backing import Backing
from placet.local.system import System
from placet.local.system import system as run_system
from world import World

POLICY = Path(__file__).parent / "policy.yaml"

SETTINGS = {
    "*": {"PLACET_RELAY_GRACE_SECONDS": "0.3"},
    "ingress": {"PLACET_ANSWER_SECONDS": "2"},
    "permission": {"PLACET_POLICY_FILE": str(POLICY), "PLACET_EXPIRY_SECONDS": "0.2"},
    "admission": {"PLACET_LEASE_SECONDS": "3", "PLACET_ASK_SECONDS": "1", "PLACET_RECOVERY_SECONDS": "0.2"},
    "executor": {"PLACET_LEASE_SECONDS": "3", "PLACET_ASK_SECONDS": "1.5", "PLACET_PROVIDER_SECONDS": "1"},
}


@pytest.fixture(scope="session")
async def fragile(backing: Backing) -> AsyncGenerator[System]:
    """The system that the tests of this folder kill."""
    async with run_system(backing, SETTINGS) as running:
        yield running


@pytest.fixture
async def world(fragile: System) -> AsyncGenerator[World]:
    """The people, at the fragile system, which is whole again afterwards."""
    async with World(fragile) as made:
        yield made
        await made.fault()
    await fragile.mend()
