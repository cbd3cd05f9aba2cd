"""A client of Placet's HTTP API."""

from placet.client.api import Client, Refused

__all__ = ["Client", "Refused"]
