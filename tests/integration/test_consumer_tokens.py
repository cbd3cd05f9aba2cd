"""A person's token is not kept with a delivery that is parked, wherever it stands in a body that cannot be read (P6)."""

import pytest

from placet.contracts.turns import TurnRequested
from placet.testing import wait_until
from stations import Heard, Json, Station


async def parked_of_a_frontend(body: bytes, station: Station) -> bytes:
    """What ingress keeps of a body that a frontend says."""
    channel = await station.channel("frontend")
    await station.say(channel, "frontend", "frontend", TurnRequested.wire, body)
    await station.consumer("ingress", Heard())

    async def look() -> list[Json]:
        return await station.rows("ingress", "parked")

    (row,) = await wait_until(look, "the delivery is parked")
    return row["body"]


@pytest.mark.req("P6", "M4")
@pytest.mark.parametrize(
    "body",
    [
        b'{"authorization": "TOKEN", "odd": 1}',
        b'{"authorization": "TOKEN", "authorization": "TOKEN"}',
        b'{"authorization": "TOKEN',
        rb'{"authorization": "a\"TOKEN"}',
        rb'{"authoriz\u0061tion": "TOKEN"}',
        b'{"auth": ["a", ":"], "authorization": "TOKEN"}',
        b'{"auth" "" "odd": "eyJTOKEN.TOKEN.TOKEN',
        b'{"auth": "say "hi", "authorization": "TOKEN"}',
        rb'{"auth": "say "hi", "odd": "Bearer\teyJTOKEN.TOKEN.TOKEN"}',
    ],
    ids=["whole", "twice", "cut off", "with a quote", "escaped name", "behind an array", "anywhere", "odd quote", "escape"],
)
async def test_a_token_is_not_kept_with_what_is_parked(body: bytes, station: Station) -> None:
    kept = await parked_of_a_frontend(body, station)
    assert b"TOKEN" not in kept
    assert kept.startswith(b'{"auth')


@pytest.mark.req("M4")
async def test_a_large_odd_body_is_parked_as_fast_as_it_is_large(station: Station) -> None:
    """What reads it for tokens never looks back: it would keep the service from everything else for minutes."""
    body = rb"\"" * 120_000
    assert await parked_of_a_frontend(body, station) == body
