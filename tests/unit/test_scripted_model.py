"""The scripted model says what its script holds, finds its step in the transcript, and keeps nothing in memory."""

import json
from pathlib import Path

import pytest

from placet.contracts.turns import Outcome, Role
from placet.planner.model import CallAsked, CallSaid, ModelFailed, Reply, Said
from placet.planner.scripted import INLINE, Script, ScriptedModel, load_scripts
from placet.planner.settings import SHIPPED_SCRIPT
from placet.service.documents import BadDocument

STEPS = [{"say": "one"}, {"calls": [{"tool": "crm_export", "arguments": {"format": "csv"}}]}, {"say": "three"}]
MODEL = ScriptedModel([Script.model_validate({"when": "Export", "steps": STEPS})])


def transcript(text: str, replies: int, *, before: int = 0) -> list[Said]:
    """A conversation whose last user message has got so many replies; `before` earlier ones belong to earlier messages."""
    replied: list[Role] = ["assistant", "tool"]
    roles: list[Role] = ["user", *replied[:1] * before, "user", *replied * replies]
    last = before + 1
    return [
        Said(index, role, text if index == last else "Export", "k" if role == "tool" else None)
        for index, role in enumerate(roles)
    ]


@pytest.mark.req("U6")
@pytest.mark.parametrize("before", [0, 3])
async def test_the_step_is_found_by_counting_the_replies_since_the_last_message(before: int) -> None:
    replies = [await MODEL.ask(transcript("please export", done, before=before)) for done in range(3)]
    call = CallAsked("call_0", "crm_export", '{"format": "csv"}')
    assert replies == [Reply("one"), Reply("", (call,)), Reply("three")]


@pytest.mark.req("U6", "T4")
async def test_the_same_transcript_gets_the_same_reply() -> None:
    asked = transcript("export", 1)
    assert await MODEL.ask(asked) == await MODEL.ask(asked) == await ScriptedModel([MODEL_SCRIPT]).ask(asked)


MODEL_SCRIPT = Script.model_validate({"when": "Export", "steps": STEPS})


@pytest.mark.req("U6")
async def test_a_message_may_bring_its_own_script() -> None:
    text = INLINE + json.dumps([{"calls": [{"tool": "t", "raw": "{not json", "hint": "call_7"}, {"tool": "u"}]}])
    reply = await MODEL.ask(transcript(text, 0))
    assert reply.calls == (CallAsked("call_7", "t", "{not json"), CallAsked("call_1", "u", "{}"))


@pytest.mark.req("U6")
async def test_raw_arguments_may_be_empty() -> None:
    reply = await MODEL.ask(transcript(INLINE + '[{"calls": [{"tool": "t", "raw": ""}]}]', 0))
    assert reply.calls == (CallAsked("call_0", "t", ""),)


@pytest.mark.req("T11")
@pytest.mark.parametrize(
    "text", ["!script ", "!script {", "!script {}", '!script [{"say": 7}]', '!script [{"tool": "t"}]', "!script []"]
)
async def test_a_script_that_cannot_be_read_is_a_failure_of_the_model(text: str) -> None:
    with pytest.raises(ModelFailed):
        await MODEL.ask(transcript(text, 0))


@pytest.mark.req("T11")
async def test_a_script_that_is_over_is_a_failure_of_the_model() -> None:
    with pytest.raises(ModelFailed, match="3 steps"):
        await MODEL.ask(transcript("export", 3))


async def test_a_message_that_no_script_knows_gets_an_answer_and_no_calls() -> None:
    reply = await MODEL.ask(transcript("what is the weather", 0))
    assert reply.text
    assert reply.calls == ()


@pytest.mark.req("U6")
async def test_the_shipped_script_can_be_played_to_its_end() -> None:
    scripts = load_scripts(Path(SHIPPED_SCRIPT))
    model = ScriptedModel(scripts)
    for script in scripts:
        for done in range(len(script.steps)):
            assert await model.ask(transcript(script.when, done)) == script.steps[done].reply()


def called(text: str, *outcomes: Outcome) -> list[Said]:
    """A conversation in which one reply asked for calls that ended with these outcomes, the last call first."""
    calls = tuple(CallSaid(f"call_{index}", "a", "{}") for index in range(len(outcomes)))
    results = [Said(9, "tool", "{}", call.tool_call_id, outcome) for call, outcome in zip(calls, outcomes, strict=True)]
    return [Said(1, "user", text), Said(2, "assistant", "", calls=calls), *reversed(results)]


@pytest.mark.req("U6")
@pytest.mark.parametrize("outcome", ["denied", "failed", "expired", "unknown", "skipped"])
async def test_the_shipped_script_claims_no_success_that_there_was_not(outcome: Outcome) -> None:
    scripts = load_scripts(Path(SHIPPED_SCRIPT))
    model = ScriptedModel(scripts)
    for script in scripts:
        good = await model.ask(called(script.when, outcome, "succeeded"))
        bad = await model.ask(called(script.when, "succeeded", outcome))
        assert (good.text, bad.text) == (script.steps[1].say, script.steps[1].otherwise)
        assert bad.text


@pytest.mark.req("U6")
async def test_a_step_without_another_text_says_the_same_after_any_call() -> None:
    assert (await MODEL.ask([*called("export", "denied"), Said(9, "assistant", "")])).text == "three"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("- when: x\n", "0.steps"),
        ("- {when: x, steps: []}", "0.steps"),
        ("- {when: x, steps: [{sya: hello}]}", "0.steps.0.sya"),
        ("when: x", "$"),
        ("[", "line 1"),
        ("[2020-99-99]", "month"),
        ("- {when: x, steps: [{say: one}], steps: [{say: two}]}", "'steps' stands twice"),
        ("- {when: x, steps: [{say: one, say: two}]}", "'say' stands twice"),
        ("- {? &key [x] : 1, ? *key : 2}", "unhashable key"),
    ],
)
def test_a_script_file_with_a_mistake_is_refused_by_name(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "script.yaml"
    file.write_text(text)
    with pytest.raises(BadDocument) as caught:
        load_scripts(file)
    assert named in str(caught.value)


def test_a_script_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadDocument, match="gone"):
        load_scripts(tmp_path / "gone.yaml")
