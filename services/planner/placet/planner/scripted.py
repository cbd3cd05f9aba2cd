"""The scripted model: says what a script holds, so that everything runs without a key (U6).

A user's message that begins with `!script ` brings its own steps as JSON; else the first script whose `when` stands in
the message is played. The step is found by counting the replies since that message, so nothing is held in memory.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from placet.contracts.message import why_invalid
from placet.planner.model import CallAsked, ModelFailed, Reply, Said
from placet.service.documents import BadDocument, read_document

INLINE = "!script "


class ScriptedCall(BaseModel):
    """A call of a step. `raw` is sent as it is, for arguments that are not proper JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    raw: str | None = None
    hint: str = ""


class Step(BaseModel):
    """One reply. `otherwise` is said in place of `say` when the call before it did not succeed."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    say: str = ""
    otherwise: str = ""
    calls: tuple[ScriptedCall, ...] = ()

    def reply(self, *, succeeded: bool = True) -> Reply:
        """The step as the model's reply, after a call that succeeded or did not."""
        return Reply(
            self.say if succeeded else self.otherwise or self.say,
            tuple(
                CallAsked(
                    call.hint or f"call_{index}",
                    call.tool,
                    json.dumps(call.arguments, ensure_ascii=False) if call.raw is None else call.raw,
                )
                for index, call in enumerate(self.calls)
            ),
        )


class Script(BaseModel):
    """The replies to messages that hold `when`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    when: str
    steps: list[Step] = Field(min_length=1)


_SCRIPTS = TypeAdapter(list[Script])
_STEPS = TypeAdapter(list[Step])


def load_scripts(path: Path) -> list[Script]:
    """The scripts of a file. Raises BadDocument with the key that is wrong."""
    try:
        return _SCRIPTS.validate_python(read_document(path))
    except ValidationError as invalid:
        raise BadDocument(f"{path}: {why_invalid(invalid)}") from invalid


class ScriptedModel:
    """A model whose every answer is known."""

    name = "scripted"

    def __init__(self, scripts: Sequence[Script]) -> None:
        self._scripts = scripts

    async def ask(self, transcript: Sequence[Said]) -> Reply:
        """The next step of the script that the last user message chose. Raises ModelFailed when there is none."""
        last = max(index for index, said in enumerate(transcript) if said.role == "user")
        done = sum(said.role == "assistant" for said in transcript[last:])
        steps = self._steps(transcript[last].text)
        if done >= len(steps):
            raise ModelFailed(f"the script has {len(steps)} steps, and all have been said")
        return steps[done].reply(succeeded=_succeeded(transcript[last:]))

    def _steps(self, text: str) -> list[Step]:
        if text.startswith(INLINE):
            try:
                return _STEPS.validate_json(text.removeprefix(INLINE))
            except ValidationError as invalid:
                raise ModelFailed(f"the script in the message cannot be read: {why_invalid(invalid)}") from None
        chosen = next((script for script in self._scripts if script.when.lower() in text.lower()), None)
        return chosen.steps if chosen else [Step(say="I have no script for that. Ask me to add a note to a customer.")]


def _succeeded(transcript: Sequence[Said]) -> bool:
    """Whether the last call that was asked for has succeeded; true when there was none."""
    last = next((said.calls[-1].tool_call_id for said in reversed(transcript) if said.calls), None)
    outcomes = [said.outcome for said in transcript if said.role == "tool" and said.tool_call_id == last]
    return all(outcome == "succeeded" for outcome in outcomes)
