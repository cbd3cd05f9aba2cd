"""What a person typed, looked at before anything is sent. All raise typer.BadParameter: wrong usage."""

import re

import typer

# As contracts and ingress have them; the client stands without their code.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_KEY = re.compile(r"[ -~]{1,255}")


def readable(text: str | None) -> str | None:
    """Text that can be sent. Bytes that the terminal's encoding does not know come in as what no encoding can write."""
    try:
        (text or "").encode()
    except UnicodeEncodeError as error:
        raise typer.BadParameter("it is not text in this terminal's encoding, which should be UTF-8.") from error
    return text


def not_empty(text: str | None) -> str | None:
    """An empty value is most often a variable that is not set: to go on as if nothing was said would be another wish."""
    if text is not None and not text.strip():
        raise typer.BadParameter("it is empty.")
    return readable(text)


def identifier(text: str | None) -> str | None:
    """An id as Placet gives them."""
    if text is not None and not _ID.fullmatch(text):
        raise typer.BadParameter("this is no id; ids look like conv_0190... or apr_5Zk2...")
    return text


def request_key(text: str | None) -> str | None:
    """A key as the API takes it."""
    if not_empty(text) is not None and not _KEY.fullmatch(text or ""):
        raise typer.BadParameter("a key has at most 255 printable ASCII characters.")
    return text
