"""`python -m placet.admission serve | migrate | check`."""

from placet.admission.app import build
from placet.admission.settings import Settings
from placet.service.runner import main

if __name__ == "__main__":
    main("admission", build, Settings, ["placet.messaging", "placet.admission"], about=__doc__ or "")
