"""What the provider knows: customers, executed operations and the log of effects. No HTTP in here."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal
from uuid import uuid4

ENDLESS_TENANTS = ("bench", "mem")
"""Tenants so named never run out of customers: one springs into being when first asked for."""

SEED = {
    "t1": {"C-42": "Ada Example GmbH", "C-7": "Seven Seas Ltd", "r-1": "Resource One", "r-2": "Resource Two"},
    "t2": {"r-t2-1": "Resource One of Tenant Two"},
    "acme": {"C-42": "Ada Example GmbH", "C-7": "Seven Seas Ltd"},
}

Kind = Literal["note.create", "note.delete"]


@dataclass(frozen=True)
class Note:
    """A remark about a customer."""

    id: str
    body: str


@dataclass
class Customer:
    """A customer record; the revision moves with every change."""

    id: str
    name: str
    email: str
    status: str = "active"
    revision: int = 1
    notes: list[Note] = field(default_factory=list[Note])

    def note(self, note_id: str | None) -> Note | None:
        """The note of that id, if the customer has it."""
        return next((note for note in self.notes if note.id == note_id), None)


@dataclass(frozen=True)
class Operation:
    """One request for an effect, named by its idempotency key."""

    tenant: str
    key: str
    kind: Kind
    customer_id: str
    note_id: str | None = None
    payload: dict[str, Any] = field(default_factory=dict[str, Any])
    if_match: str | None = None

    def is_same_request_as(self, other: "Operation") -> bool:
        """Whether a replay may answer: the precondition is not part of what was asked."""
        return replace(self, if_match=None) == replace(other, if_match=None)


@dataclass(frozen=True)
class Answer:
    """What the caller is told: a status and a JSON body."""

    status: int
    body: dict[str, Any]
    replayed: bool = False

    @classmethod
    def error(cls, status: int, code: str) -> "Answer":
        """A refusal; nothing has happened."""
        return cls(status, {"error": code})

    @property
    def is_success(self) -> bool:
        """Whether the effect is done, now or earlier."""
        return self.status < 300


@dataclass(frozen=True)
class Effect:
    """One change that really happened; tests count these, not status codes."""

    tenant: str
    operation_key: str
    kind: Kind
    customer_id: str
    payload: dict[str, Any]
    note_id: str


class CrmStore:
    """The provider's whole state, in memory."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything and seed the customers again."""
        self.effects: list[Effect] = []
        self._executed: dict[tuple[str, str], tuple[Operation, Answer]] = {}
        self._tenants = {
            tenant: {id: new_customer(id, name) for id, name in customers.items()} for tenant, customers in SEED.items()
        }

    def customer(self, tenant: str, customer_id: str) -> Customer | None:
        """A tenant's own customer; another tenant's does not exist."""
        customers = self._tenants.setdefault(tenant, {})
        if tenant.startswith(ENDLESS_TENANTS) and customer_id not in customers:
            customers[customer_id] = new_customer(customer_id, f"Customer {customer_id}")
        return customers.get(customer_id)

    def export(self, tenant: str) -> list[dict[str, Any]]:
        """Every customer of the tenant, notes included."""
        return [asdict(customer) for customer in self._tenants.get(tenant, {}).values()]

    def merge_customer(self, tenant: str, customer_id: str, fields: dict[str, str]) -> Customer:
        """Change a customer behind the callers' backs, or bring in a new one."""
        known = self.customer(tenant, customer_id)
        customer = known or replace(new_customer(customer_id, f"Customer {customer_id}"), revision=0)
        changed = replace(customer, **fields, revision=customer.revision + 1)
        self._tenants[tenant][customer_id] = changed
        return changed

    def executed(self, tenant: str, key: str) -> Answer | None:
        """The stored answer of an executed operation."""
        known = self._executed.get((tenant, key))
        return replace(known[1], replayed=True) if known else None

    def execute(self, operation: Operation, remember: bool = True) -> Answer:
        """Do it once per key. Without memory the same key does it again, as with a provider that has no keys."""
        if remember and (earlier := self._earlier_answer(operation)):
            return earlier
        answer = self._perform(operation)
        if remember and answer.is_success:
            self._executed[operation.tenant, operation.key] = (operation, answer)
        return answer

    def _earlier_answer(self, operation: Operation) -> Answer | None:
        known = self._executed.get((operation.tenant, operation.key))
        if known and not known[0].is_same_request_as(operation):
            return Answer.error(422, "idempotency_key_reused")
        return self.executed(operation.tenant, operation.key)

    def _perform(self, operation: Operation) -> Answer:
        customer = self.customer(operation.tenant, operation.customer_id)
        if customer is None:
            return Answer.error(404, "not_found")
        if operation.if_match not in (None, str(customer.revision)):
            return Answer.error(412, "precondition_failed")
        if operation.kind == "note.create":
            return self._create_note(customer, operation)
        return self._delete_note(customer, operation)

    def _create_note(self, customer: Customer, operation: Operation) -> Answer:
        note = Note(f"note_{uuid4().hex}", operation.payload["body"])
        customer.notes.append(note)
        return self._record(201, customer, operation, note)

    def _delete_note(self, customer: Customer, operation: Operation) -> Answer:
        note = customer.note(operation.note_id)
        if note is None:
            return Answer.error(404, "not_found")
        customer.notes.remove(note)
        return self._record(200, customer, operation, note)

    def _record(self, status: int, customer: Customer, operation: Operation, note: Note) -> Answer:
        customer.revision += 1
        self.effects.append(Effect(operation.tenant, operation.key, operation.kind, customer.id, operation.payload, note.id))
        receipt = f"rcpt_{uuid4().hex}"
        revision = customer.revision
        return Answer(status, {"receipt": receipt, "note_id": note.id, "customer_id": customer.id, "revision": revision})


def new_customer(customer_id: str, name: str) -> Customer:
    """A customer as first seen."""
    return Customer(customer_id, name, f"{customer_id.lower()}@example.com")
