"""The management API of a broker, which has no figures of a queue until it has counted (U5)."""

import asyncio
import json

import pytest

from placet.local.broker_admin import ManagementApi
from terminal import answering, http


@pytest.mark.req("U5", "T1")
async def test_a_queue_that_the_broker_has_not_counted_yet_is_not_taken_for_one_without_deliveries() -> None:
    counted = [{"name": "letters", "messages_unacknowledged": 1}, {"name": "bills", "messages_unacknowledged": 0}]
    answers = ([{"name": "letters"}, counted[1]], counted)
    async with answering(*(http("200 OK", json.dumps(answer)) for answer in answers)) as url:
        api = ManagementApi(url, "amqp://127.0.0.1:1")
        assert await asyncio.to_thread(api.unacknowledged, "/") == {"letters": 1}
