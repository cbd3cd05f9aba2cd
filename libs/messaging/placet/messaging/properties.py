"""Properties that cannot be read cost their own message only.

Whoever may publish may also send what the client library cannot decode: a time beyond the year 9999, text that is not
UTF-8. The broker lets it pass, and pamqp raises inside the reader of the connection: the connection ends, the message is
delivered again, and takes everything else on its connection along until the broker gives all of it up. We stop at the
property that cannot be read instead: what comes after it is absent, among it mostly the user, so the message is parked.
"""

from typing import Any

from pamqp.base import BasicProperties

NOTE = "placet-unreadable"
"""Header that says why the properties of a message end early."""

_unmarshal = BasicProperties.unmarshal


def _read(self: Any, flags: int, data: bytes) -> None:
    try:
        _unmarshal(self, flags, data)
    except Exception as error:  # whatever it was: raising here ends the connection
        self.headers = {NOTE: f"{type(error).__name__}: {error}"[:300]}


def tolerate_odd_properties() -> None:
    """Let every connection of this process read on behind properties that cannot be read."""
    BasicProperties.unmarshal = _read
