"""`make up`: the system until Ctrl-C, with development logins for the command line."""

import asyncio
import signal
from pathlib import Path

from placet.local.backing import Backing
from placet.local.system import system
from placet.local.tokens import write_profile

PROFILE = Path(".placet/profile.json")
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
    """Run everything, write the profile that the command line reads, and wait for Ctrl-C."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with system(backing, {"ingress": {"PLACET_HTTP_PORT": str(port)}}) as running:
        write_profile(running, PROFILE, TENANT)
        print(WHERE.format(url=running.url, provider=running.provider_url, folder=running.folder), flush=True)
        await stop.wait()
        await running.stop()
