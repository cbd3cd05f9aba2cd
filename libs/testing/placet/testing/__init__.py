"""What the tests of Placet wait with."""

from placet.testing.waiting import wait_until

__all__ = ["wait_until"]
