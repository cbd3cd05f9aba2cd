"""Throw-away containers, for machines with a Docker engine."""

import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from placet.local.errors import NotThisWay

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

ENGINE_ANSWERS_WITHIN = 5.0
READY_WITHIN = 120.0
"""Seconds from a started container to the first login."""


@contextmanager
def container(
    image: str, ports: list[int], *, environment: Mapping[str, str] | None = None, command: list[str] | None = None
) -> Generator[dict[int, str]]:
    """Run `image` for the block; gives the address (host:port) of each of its ports. It need not be ready yet.

    Raises `NotThisWay` when no engine answers or the image cannot be had.
    """
    _see_an_engine()
    # Imported here, because most machines go another way and the import is slow.
    from testcontainers.core.container import DockerContainer

    box = DockerContainer(image).with_exposed_ports(*ports).with_envs(**(environment or {}))
    try:
        yield _addresses(box.with_command(command or []), image, ports)
    finally:
        box.stop()


def _addresses(box: "DockerContainer", image: str, ports: list[int]) -> dict[int, str]:
    """Start it and say where its ports are."""
    try:
        box.start()
        return {port: f"{box.get_container_host_ip()}:{box.get_exposed_port(port)}" for port in ports}
    except Exception as error:  # the Docker client has no error of its own for all that can happen here
        raise NotThisWay(f"Docker cannot run {image}: {error}") from error


def _see_an_engine() -> None:
    try:
        subprocess.run(["docker", "info"], check=True, capture_output=True, timeout=ENGINE_ANSWERS_WITHIN)
    except (OSError, subprocess.SubprocessError) as error:
        raise NotThisWay("no Docker engine answers (docker info)") from error
