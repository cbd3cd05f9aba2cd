"""Put the workspace on the path of the environment that runs this script, and the `placet` command beside its Python.

A path file needs no build backend and no network, and an edit is seen at once.
"""

import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def members() -> list[Path]:
    """The distributions of the workspace, each a folder with a `placet/` namespace package in it."""
    return sorted(path.parent for path in ROOT.glob("*/**/pyproject.toml") if (path.parent / "placet").is_dir())


def main() -> None:
    site = Path(sysconfig.get_path("purelib"))
    (site / "placet-workspace.pth").write_text("".join(f"{member}\n" for member in members()))
    command = Path(sys.executable).parent / "placet"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m placet.client "$@"\n')
    command.chmod(0o755)


if __name__ == "__main__":
    main()
