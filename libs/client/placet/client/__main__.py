"""The `placet` command: a thin layer over the HTTP API, for people at a terminal.

\b
Exit codes: 0 done, 1 refused by the API, 2 wrong usage, 3 not reached, 130 left with Ctrl-C.
"""

import io
import sys

import typer

from placet.client.cli import answers, doctor, turns

app = typer.Typer(
    name="placet",
    help=__doc__,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

for command in (
    turns.submit,
    turns.watch,
    turns.show,
    turns.retry,
    answers.approvals,
    answers.card,
    answers.approve,
    answers.deny,
    doctor.doctor,
):
    app.command()(command)


def main() -> None:
    """Run the command. A terminal that cannot show a sign gets it written out instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="placet")


if __name__ == "__main__":
    main()
