"""The `placet` command: a thin layer over the HTTP API, for people at a terminal.

Where Placet is and as whom to speak: options, then PLACET_URL and PLACET_TOKEN, then the profile that `make up` wrote,
.placet/profile.json of the current folder or the file that PLACET_PROFILE names.

\b
Exit codes: 0 done, 1 refused by the API or cut short, 2 wrong usage, 3 not reached, 130 left with Ctrl-C.
"""

import errno
import io
import os
import sys
from typing import NoReturn

import typer

from placet.client.cli import answers, doctor, turns
from placet.client.cli.leaving import REFUSED

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
    """Run the command. A sign that a terminal cannot show, or cannot have typed, is written out instead of an error."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            app(prog_name="placet")
        finally:
            print(end="", flush=True)
    except OSError as error:
        _cut_short(error)


def _cut_short(error: OSError) -> NoReturn:
    """What is printed can go nowhere. Who closed a pipe knows that; the interpreter would complain as well when it ends."""
    if error.errno != errno.EPIPE:
        print(f"Cut short: {error.strerror}.", file=sys.stderr)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(REFUSED)


if __name__ == "__main__":
    main()
