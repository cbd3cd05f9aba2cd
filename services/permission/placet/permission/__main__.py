"""`python -m placet.permission serve | migrate | check`."""

from placet.permission.app import build
from placet.permission.settings import Settings
from placet.service.runner import main

if __name__ == "__main__":
    main("permission", build, Settings, ["placet.messaging", "placet.permission"], about=__doc__ or "")
