"""State and promise in one commit; a consumer that loses nothing; questions that do not wait in memory for people."""

from placet.messaging.consumer import WAITING_HELPS, Consumer, Handler
from placet.messaging.messages import Cause, Promise, promise
from placet.messaging.outbox import Outbox
from placet.messaging.parking import BrokerParking, DatabaseParking, Kept, Stall
from placet.messaging.properties import tolerate_odd_properties
from placet.messaging.publisher import Publisher
from placet.messaging.requester import NoAnswer, NotAsked, Requester

tolerate_odd_properties()

__all__ = [
    "WAITING_HELPS",
    "BrokerParking",
    "Cause",
    "Consumer",
    "DatabaseParking",
    "Handler",
    "Kept",
    "NoAnswer",
    "NotAsked",
    "Outbox",
    "Promise",
    "Publisher",
    "Requester",
    "Stall",
    "promise",
]
