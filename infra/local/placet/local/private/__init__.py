"""Throw-away servers of our own: what a run starts when nobody offers one, and what a test may kill."""

from placet.local.private.postgres import PrivatePostgres
from placet.local.private.rabbitmq import PrivateRabbitMQ
from placet.local.private.redis import PrivateRedis
from placet.local.private.scratch import Scratch

__all__ = ["PrivatePostgres", "PrivateRabbitMQ", "PrivateRedis", "Scratch"]
