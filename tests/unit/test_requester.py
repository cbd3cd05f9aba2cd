"""The asker, as far as it can be seen without a broker."""

import asyncio
import gc
import logging
import socket
import warnings

import pytest
from aiormq.exceptions import AMQPConnectionError

from placet.messaging import Requester


@pytest.mark.req("M5")
async def test_what_cannot_connect_is_closed_and_not_left_to_the_collector(caplog: pytest.LogCaptureFixture) -> None:
    """The client's connections close themselves when they are collected, which only the loop's own thread may do."""
    gc.collect()  # what other tests have left ends here, in the loop's own thread
    caplog.set_level(logging.CRITICAL, "aiormq.connection")  # a kept record would keep the connection
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        requester = Requester("admission", f"amqp://nobody@127.0.0.1:{deaf.getsockname()[1]}/", user_prefix="")
        with pytest.raises(AMQPConnectionError):
            await requester.start()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        await asyncio.to_thread(gc.collect)
    assert not [each for each in warned if "Connection.close" in str(each.message)]
