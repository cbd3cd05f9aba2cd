"""The client library and the `placet` command where there is no Placet: what is refused before anything is sent."""

import pytest

from placet.client import Client, Refused
from terminal import answering, http

NOBODY = "http://127.0.0.1:9"


@pytest.mark.req("U4")
@pytest.mark.parametrize("name", ["", ".", "..", "../approvals", "conv_1/events"])
async def test_a_name_that_leaves_its_place_in_a_path_names_nothing(name: str) -> None:
    async with Client(NOBODY, "a-token") as client:
        requests = [
            client.conversation(name),
            client.retry(name, "turn_1"),
            client.retry("conv_1", name),
            client.approval(name),
            client.decide(name, "approve", "sha256:0"),
            anext(client.events(name)),
        ]
        for request in requests:
            with pytest.raises(Refused) as refused:
                await request
            assert (refused.value.status, refused.value.code) == (404, "not_found")


@pytest.mark.req("U4")
async def test_an_id_stays_one_segment_of_a_path() -> None:
    heard: list[str] = []
    async with answering(http("404 Not Found", "{}"), heard=heard) as url, Client(url, "a-token") as client:
        with pytest.raises(Refused):
            await client.approval("a?b#c%2e é")
    assert heard == ["GET /v1/approvals/a%3Fb%23c%252e%20%C3%A9 HTTP/1.1"]
