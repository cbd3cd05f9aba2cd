"""`python -m placet.admission serve | migrate | check`."""

from placet.admission.app import PACKAGES, build
from placet.admission.settings import Settings
from placet.service.runner import main

if __name__ == "__main__":
    main(build, Settings, PACKAGES, about=__doc__ or "")
