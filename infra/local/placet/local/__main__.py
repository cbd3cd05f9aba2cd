"""`python -m placet.local demo | up`: the whole system on this machine, with nothing but a checkout."""

import asyncio
import sys

import typer

from placet.local.backing import backing
from placet.local.errors import BackingError
from placet.local.processes import DidNotStart

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)


@app.command()
def demo() -> None:
    """Run the demonstration: one gated call, killed in the middle, done once. Exit status 1 if anything did not hold."""
    from placet.local.demo import run_demo

    with backing() as found:
        raise typer.Exit(asyncio.run(run_demo(found)))


@app.command()
def up(port: int = typer.Option(8080, min=0, max=65535, help="Port of the HTTP API")) -> None:
    """Run the whole system until Ctrl-C, and say where to look."""
    from placet.local.up import run_up

    with backing(durable=True) as found:
        asyncio.run(run_up(found, port))


def main() -> None:
    """Run a command; what is missing on this machine is one clear line, not a traceback."""
    try:
        app()
    except BackingError as error:
        print(f"placet: {error}", file=sys.stderr)
        sys.exit(1)
    except DidNotStart as error:
        print(f"placet: {error.in_one_line()}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
