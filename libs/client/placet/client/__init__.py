"""A client of Placet's HTTP API."""

from placet.client.api import Client, Event, Refused

__all__ = ["Client", "Event", "Refused"]
