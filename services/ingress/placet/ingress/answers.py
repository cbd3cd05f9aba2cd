"""What the API answers, for its document: the answers themselves are made where they are known."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from placet.contracts.ids import Id
from placet.contracts.permissions import Digest, PermissionRequested
from placet.contracts.turns import MessageView, TurnState

CardState = Literal["pending", "approved", "denied", "expired"]


class TurnAnswer(BaseModel):
    """A turn is accepted."""

    turn_id: Id
    conversation_id: Id
    state: Literal["accepted"]


class RetryAnswer(BaseModel):
    """A turn is tried again."""

    turn_id: Id
    conversation_id: Id


class Turn(BaseModel):
    """A turn as its owner sees it; `stalled` says why it cannot go on."""

    turn_id: Id
    state: TurnState | Literal["resume_failed"]
    reason: str
    stalled: str | None


class Message(MessageView):
    """One message of the transcript, and its turn."""

    turn_id: Id


class Judged(BaseModel):
    """How a card stands."""

    state: CardState
    decided_by: str | None
    reason: str


class ConversationCard(Judged):
    """A card of the conversation, and its turn."""

    turn_id: Id
    card: PermissionRequested


class Conversation(BaseModel):
    """A conversation, whole. `state` is its last turn's; `last_event_id` is where its events go on."""

    conversation_id: Id
    state: TurnState | Literal["resume_failed"]
    last_event_id: int
    turns: list[Turn]
    messages: list[Message]
    cards: list[ConversationCard]


class Card(PermissionRequested, Judged):
    """A card, and how it stands."""


class CardPage(BaseModel):
    """Open cards. `next_cursor` leads on; null: there are no more."""

    items: list[Card]
    next_cursor: str | None


class Decision(BaseModel):
    """The decision that stands."""

    interrupt_id: Id
    state: CardState
    decided_by: str | None
    decided_at: datetime | None
    digest: Digest | None


class NotAnsweredYet(BaseModel):
    """The answer to the card is on its way."""

    code: Literal["not_answered_yet"]
    interrupt_id: Id


class ProblemDocument(BaseModel):
    """An RFC 9457 problem. `code` is for machines; other members may tell more, such as what decision stands."""

    model_config = ConfigDict(extra="allow")
    type: str
    title: str
    status: int
    code: str
    detail: str
    path: str | None = Field(default=None, description="Where in the body the fault lies")
