"""`python -m placet.executor serve | check`."""

from placet.executor.app import build
from placet.executor.settings import Settings
from placet.service.runner import main

if __name__ == "__main__":
    main(build, Settings, about=__doc__ or "")
