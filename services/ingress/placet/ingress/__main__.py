"""`python -m placet.ingress serve | migrate | check`."""

from placet.ingress.app import PACKAGES, build
from placet.ingress.settings import Settings
from placet.service.runner import main

if __name__ == "__main__":
    main(build, Settings, PACKAGES, about=__doc__ or "")
