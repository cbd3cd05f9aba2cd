"""`python -m placet.planner serve | migrate | check`."""

from placet.planner.app import build
from placet.planner.settings import Settings
from placet.service.runner import main

if __name__ == "__main__":
    main("planner", build, Settings, ["placet.messaging", "placet.planner"], about=__doc__ or "")
