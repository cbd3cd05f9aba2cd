"""The published catalogue of actions: what a model may ask for, with closed argument schemas (A1).

Admission enforces it; the planner shows it to the model; a policy may name nothing else.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

ResourceId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class Arguments(BaseModel):
    """Arguments of an action: closed, and read without any coercion."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class CustomerGet(Arguments):
    customer_id: ResourceId = Field(description="The customer to read, for example C-42")


class NoteCreate(Arguments):
    customer_id: ResourceId = Field(description="The customer that the note is about, for example C-42")
    body: str = Field(min_length=1, max_length=2000, description="The text of the note")


class NoteDelete(Arguments):
    customer_id: ResourceId = Field(description="The customer that the note is about")
    note_id: ResourceId = Field(description="The note to delete")


class Export(Arguments):
    format: Literal["csv", "json"] = Field(description="The format of the export")


@dataclass(frozen=True, slots=True)
class Action:
    """An allowlisted kind of effect. `resource` names the argument that holds the target, if there is one."""

    name: str
    version: int
    summary: str
    effect: Literal["read", "write"]
    arguments: type[Arguments]
    resource: str | None

    @property
    def tool(self) -> str:
        """The name that the model sees: model APIs allow no dots, and a table maps it back."""
        return self.name.replace(".", "_")

    @property
    def schema(self) -> dict[str, Any]:
        """The closed JSON Schema of the arguments."""
        return self.arguments.model_json_schema()


ACTIONS: dict[str, Action] = {
    action.name: action
    for action in (
        Action("crm.customer.get", 1, "Read one customer of the CRM", "read", CustomerGet, "customer_id"),
        Action("crm.note.create", 1, "Add a note to a customer", "write", NoteCreate, "customer_id"),
        Action("crm.note.delete", 1, "Delete a note of a customer", "write", NoteDelete, "customer_id"),
        Action("crm.export", 1, "Export every customer", "read", Export, None),
    )
}

TOOLS: dict[str, Action] = {action.tool: action for action in ACTIONS.values()}
"""Tool name, as the model says it, to action."""
