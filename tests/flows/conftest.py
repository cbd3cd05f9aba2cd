"""Fixtures of the tests of the whole system through its API and its command."""

from pathlib import Path

import pytest

from placet.local.tokens import write_profile
from terminal import Terminal
from world import World


@pytest.fixture
def terminal(world: World, tmp_path: Path) -> Terminal:
    """A terminal in a folder in which `make up` was called."""
    write_profile(world.system, tmp_path / ".placet" / "profile.json", world.tenant)
    return Terminal(tmp_path)
