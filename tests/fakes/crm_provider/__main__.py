"""Start the provider: `python tests/fakes/crm_provider --port 0 --token SECRET`."""

import argparse
import json
import signal
import socket
import sys
from pathlib import Path
from types import FrameType

import uvicorn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from fakes.crm_provider.app import create_app


def main() -> None:
    """Serve until SIGTERM, having said on the first line of output where."""
    options = parse_options()
    signal.signal(signal.SIGTERM, leave)
    listener = socket.create_server(("127.0.0.1", options.port))
    print(json.dumps({"listening": f"http://127.0.0.1:{listener.getsockname()[1]}"}), flush=True)
    server_for(options.token).run(sockets=[listener])


def leave(signum: int, frame: FrameType | None) -> None:
    """End with exit code 0: uvicorn raises the signal again once it has shut down."""
    sys.exit(0)


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="crm_provider", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--token", required=True, help="the bearer token of the business API")
    return parser.parse_args()


def server_for(token: str) -> uvicorn.Server:
    """One process, one loop: every effect is atomic because nothing awaits inside it."""
    config = uvicorn.Config(
        create_app(token),
        http="h11",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=75,  # longer than a client that keeps its connection for 5 s: nobody meets the end of one
    )
    return uvicorn.Server(config)


if __name__ == "__main__":
    main()
