"""Start one process of the floor: `python tests/bench/floor SERVICE`, with a service's environment."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.floor.service import Service


async def main(name: str) -> None:
    """Serve until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await Service(name, os.environ).start()
    print(json.dumps({"action": "service.started"}), flush=True)
    await stop.wait()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
