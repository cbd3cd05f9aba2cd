"""The demonstration provider in its container: on every address of it, with the token from the environment."""

import os
import signal
import socket

from fakes.crm_provider.__main__ import leave, server_for


def main() -> None:
    """Serve on CRM_PORT until SIGTERM; callers show CRM_TOKEN."""
    signal.signal(signal.SIGTERM, leave)
    # The container is on one network, with the executor alone.
    listener = socket.create_server(("0.0.0.0", int(os.environ["CRM_PORT"])))  # noqa: S104
    server_for(os.environ["CRM_TOKEN"]).run(sockets=[listener])


if __name__ == "__main__":
    main()
