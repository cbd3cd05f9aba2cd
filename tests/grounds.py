"""A ground: a vhost and databases of their own for the tests of libs/messaging, made once and shared by stations."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from placet.contracts.topology import definitions
from placet.local.addresses import vhost_url
from placet.local.broker_admin import BrokerAdmin
from placet.local.databases import create_databases, drop_databases, login_url
from placet.local.run import Run

Json = dict[str, Any]

OPERATOR = "operator"
"""A broker user with every permission in the ground's vhost."""


class Ground:
    """A vhost with the whole topology and an operator, and the databases of every service."""

    def __init__(self, amqp_url: str, admin: BrokerAdmin, postgres_url: str) -> None:
        self.amqp_url, self.admin, self.postgres_url = amqp_url, admin, postgres_url
        self.run = Run()
        self.topology = definitions(self.run.vhost, self.run.user_prefix, self.run.password)
        operator = self.run.user_prefix + OPERATOR
        self.topology["users"].append({"name": operator, "password": self.run.password(operator), "tags": ""})
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        self.topology["permissions"].append({"user": operator, "vhost": self.run.vhost, **everything})

    async def import_topology(self, **more: list[Json]) -> None:
        """Load the definitions, again perhaps, with more of them."""
        await asyncio.to_thread(self.admin.import_definitions, self.topology | more)

    def amqp(self, user: str) -> str:
        """The login of one of the broker users."""
        name = self.run.user_prefix + user
        return vhost_url(self.amqp_url, self.run.vhost, name, self.run.password(name))

    def postgres(self, service: str, *, owner: bool = False) -> str:
        """The login of a service's role, or of its schema's owner."""
        role = self.run.owner(service) if owner else self.run.database(service)
        return login_url(self.postgres_url, self.run, role, service)


@asynccontextmanager
async def ground(amqp_url: str, admin: BrokerAdmin, postgres_url: str) -> AsyncGenerator[Ground]:
    """A ground for the block; nothing of it remains."""
    made = Ground(amqp_url, admin, postgres_url)
    try:
        await made.import_topology()
        await create_databases(postgres_url, made.run)
        yield made
    finally:
        await drop_databases(postgres_url, made.run)
        users = [*made.run.users, made.run.user_prefix + OPERATOR]
        await asyncio.to_thread(admin.delete, [made.run.vhost], users)
