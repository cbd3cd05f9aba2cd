"""`make up`: the system until Ctrl-C, with development logins for the command line."""

import asyncio
import signal
from contextlib import suppress
from pathlib import Path

from placet.client.cli.access import PROFILE
from placet.local.backing import Backing
from placet.local.system import System, system
from placet.local.tokens import remove_profile, write_profile

TENANT = "acme"

WHERE = """
Placet runs at {url}  (Ctrl-C stops it and removes everything)

  .venv/bin/placet submit "Please add a note to C-42" --watch    alice asks; the turn waits for a person
  .venv/bin/placet approvals                                     what waits (as ann)
  .venv/bin/placet card ID                                       the whole card
  .venv/bin/placet approve ID                                    ann approves

  OpenAPI document  {url}/openapi.json
  provider's books  {provider}/_control/effects
  logs              {folder}
"""


async def run_up(backing: Backing, port: int) -> None:
    """Run everything until Ctrl-C, which counts while the services start too. Raises DidNotStart."""
    stop = asyncio.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    try:
        async with system(backing, {"ingress": {"PLACET_HTTP_PORT": str(port)}}, start=False) as running:
            await _until(stop, running)
            await running.stop()
    finally:
        for number in signals:
            asyncio.get_running_loop().remove_signal_handler(number)


async def _until(stop: asyncio.Event, running: System) -> None:
    up, stopped = asyncio.create_task(_up(running)), asyncio.create_task(stop.wait())
    await asyncio.wait({up, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    up.cancel()
    with suppress(asyncio.CancelledError):
        await up


async def _up(running: System) -> None:
    """Start the services, write the profile that the command line reads, and keep it as long as they run."""
    await running.start()
    write_profile(running, Path(PROFILE), TENANT)
    try:
        print(WHERE.format(url=running.url, provider=running.provider_url, folder=running.folder), flush=True)
        await asyncio.get_running_loop().create_future()
    finally:
        remove_profile(running, Path(PROFILE))
