"""Why an address could not be reached, in words: what a person can do differs with it."""

import os
import socket
import ssl
from collections.abc import Iterator
from typing import cast

import httpx2

NOBODY = "nobody listens there"


def why_unreachable(error: httpx2.HTTPError) -> str:
    """The first cause that has words; without one, the name of the error. If an address of several refused, it is that."""
    told = [words for cause in _causes(error) if (words := _words(cause))]
    return NOBODY if NOBODY in told else next(iter(told), type(error).__name__)


def _words(cause: BaseException) -> str | None:
    match cause:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not believed ({cause.verify_message})"
        case ssl.SSLError():
            return f"no TLS connection came about ({cause.reason}); is it http://?"
        case socket.gaierror():
            return f"the name of the host leads nowhere ({cause.strerror})"
        case ConnectionRefusedError():
            return NOBODY
        case OSError(errno=int(number)):
            return os.strerror(number)
        case _:
            return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what led to it; of a name with several addresses, each one's."""
    while error:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for each in cast("BaseExceptionGroup[BaseException]", error).exceptions:
                yield from _causes(each)
        error = error.__cause__ or error.__context__
