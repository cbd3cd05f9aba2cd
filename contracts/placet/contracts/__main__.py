"""`python -m placet.contracts write | check | release VERSION`."""

import argparse
import sys
from pathlib import Path

from placet.contracts import generated

CHECKOUT = Path(__file__).resolve().parents[3]


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code is 0 when all is well and 1 when not."""
    asked = _parser().parse_args(arguments)
    root: Path = asked.root
    if asked.command == "write":
        print(f"{generated.write(root)} files written from the code.")
        return 0
    return _check(root) if asked.command == "check" else _release(root, asked.version)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m placet.contracts", description=__doc__)
    parser.add_argument("--root", type=Path, default=CHECKOUT, help="the checkout to work on")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("write", help="generate schemas, examples, AsyncAPI and broker definitions")
    commands.add_parser("check", help="compare with what is committed and with what was released")
    commands.add_parser("release", help="keep the schemas and examples of a version").add_argument("version")
    return parser


def _check(root: Path) -> int:
    if found := generated.faults(root):
        print("\n".join(found))
        print("The contracts differ: run `make contracts`, or give an incompatible change a new version.", file=sys.stderr)
        return 1
    print("Contracts: all files are as generated, every message has an example, nothing released was broken.")
    return 0


def _release(root: Path, version: str) -> int:
    try:
        print(f"{generated.release(root, version)} files kept as {version}.")
    except generated.Refused as refused:
        print(refused, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
