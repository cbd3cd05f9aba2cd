"""`python -m placet.planner serve | migrate | check`."""

from placet.planner.app import PACKAGES, build
from placet.planner.settings import Settings
from placet.service.runner import main

if __name__ == "__main__":
    main(build, Settings, PACKAGES, about=__doc__ or "")
