"""State and promise in one commit; a consumer that loses nothing; questions that do not wait in memory for people."""

from placet.messaging.consumer import Consumer
from placet.messaging.messages import Cause, Promise, promise
from placet.messaging.outbox import Outbox
from placet.messaging.parking import BrokerParking, DatabaseParking, Stall
from placet.messaging.publisher import Publisher
from placet.messaging.requester import NoAnswer, NotAsked, Requester
from placet.messaging.retrying import handle_again

__all__ = [
    "BrokerParking",
    "Cause",
    "Consumer",
    "DatabaseParking",
    "NoAnswer",
    "NotAsked",
    "Outbox",
    "Promise",
    "Publisher",
    "Requester",
    "Stall",
    "handle_again",
    "promise",
]
