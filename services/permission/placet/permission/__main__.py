"""`python -m placet.permission serve | migrate | check`."""

from placet.permission.app import PACKAGES, build
from placet.permission.settings import Settings
from placet.service.runner import main

if __name__ == "__main__":
    main(build, Settings, PACKAGES, about=__doc__ or "")
