"""The profile for the people of one machine: where Placet is, and tokens with which the `placet` command speaks for them."""

import json
import os
from pathlib import Path

from placet.local.issuer import APPROVER, ASKER
from placet.local.system import System

LIFETIME_SECONDS = 12 * 3600
"""A working day: development tokens are not for anything real, and end with the run's key anyway."""

PEOPLE = {"alice": ASKER, "ann": APPROVER, "amy": APPROVER}
"""Who asks and who approves; two approvers, so that a second person is at hand."""


def write_profile(system: System, path: Path, tenant: str) -> None:
    """Write the profile of a running system for people of a tenant, readable by its owner only. Raises OSError."""
    tokens = {name: system.issuer.token(name, tenant, scopes, seconds=LIFETIME_SECONDS) for name, scopes in PEOPLE.items()}
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _replace(path, json.dumps({"url": system.url, "tokens": tokens}, indent=2) + "\n")


def remove_profile(system: System, path: Path) -> None:
    """Remove the profile of a system, unless another one has written its own since. Raises OSError."""
    if path.is_file() and json.loads(path.read_text("utf-8"))["url"] == system.url:
        path.unlink()


def _replace(path: Path, text: str) -> None:
    """Made anew under another name: a file that was there may have looser rights, or a reader in the middle of it."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)
