"""`python -m placet.ingress serve | migrate | check`."""

from placet.ingress.app import build
from placet.ingress.settings import Settings
from placet.service.runner import main

if __name__ == "__main__":
    main("ingress", build, Settings, ["placet.messaging", "placet.ingress"], about=__doc__ or "")
