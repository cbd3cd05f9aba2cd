"""From a tool call to a question: allowlist, target, canonical bytes, digest; and from the decision to a command."""

import asyncio

from placet.admission import domain
from placet.admission.store import Proposal, Store, ToolCall
from placet.canonical import CanonicalCommand, Mandate, command_digest
from placet.contracts.commands import CommandReady, ResourceResolve, ResourceResolved
from placet.contracts.ids import new_id
from placet.contracts.message import Message
from placet.contracts.permissions import PermissionAsked, PermissionDecided
from placet.contracts.turns import ToolCallProposed, told
from placet.messaging import Cause, NoAnswer, Requester


class NoMandate(Exception):
    """A proposal for a turn that ingress has not accepted from this principal."""


class Proposals:
    """Handlers of what the planner proposes and of what permission decides."""

    def __init__(
        self, store: Store, requester: Requester, mandate_key: bytes, *, ask_seconds: float, resolve_seconds: float
    ) -> None:
        self._store, self._requester, self._mandate_key = store, requester, mandate_key
        self._ask_seconds, self._resolve_seconds = ask_seconds, resolve_seconds

    async def on_tool_call_proposed(self, proposed: ToolCallProposed, cause: Cause) -> None:
        """Reject what does not fit, with a reason for the model; ask permission for the rest.

        Raises NoMandate when ingress has not vouched for who is said to ask: the planner alone is no authority.
        """
        mandate = Mandate(cause.tenant, proposed.conversation_id, proposed.turn_id, proposed.principal)
        if not mandate.is_signed(proposed.mandate, self._mandate_key):
            raise NoMandate(f"nobody vouches that {proposed.turn_id} was asked for by {proposed.principal}")
        call = ToolCall(
            cause.tenant, new_id("op"), proposed.conversation_id, proposed.turn_id, proposed.tool_call_id, proposed.action
        )
        match domain.check(proposed.action, proposed.arguments):
            case domain.Rejected(reason):
                await self._reject(call, reason, cause)
            case checked:
                await self._ask(call, checked, proposed.principal, cause)

    async def _ask(self, call: ToolCall, checked: domain.Checked, principal: str, cause: Cause) -> None:
        named = f"{checked.action.resource} {checked.resource!r}"
        try:
            target = await self._target(checked, cause)
        except NoAnswer:
            await self._reject(call, f"unavailable: {named} could not be looked up now; try again later", cause)
            return
        if target is not None and not target.exists:
            await self._reject(call, f"not_found: there is no {named}", cause)
            return
        canonical = _canonical(cause.tenant, principal, checked, target)
        digest = command_digest(canonical)
        asked = PermissionAsked(
            operation_id=call.operation_id,
            turn_id=call.turn_id,
            conversation_id=call.conversation_id,
            tool_call_id=call.tool_call_id,
            digest=digest,
            canonical=canonical.decode(),
            current=target.current if target else None,
        )
        await self._store.propose(Proposal(call, digest=digest, canonical=canonical), [cause.promise(asked)])

    async def _target(self, checked: domain.Checked, cause: Cause) -> ResourceResolved | None:
        """The target of an effect. Raises NoAnswer when it cannot be had in time: a provider that is away must not hold up
        the decisions and reports that wait behind this proposal.
        """
        if not domain.must_exist(checked) or checked.resource is None:
            return None
        question = ResourceResolve(action=checked.action.name, resource=checked.resource)
        end = asyncio.get_running_loop().time() + self._resolve_seconds
        while True:
            try:
                return await self._requester.ask(question, ResourceResolved, tenant=cause.tenant, timeout=self._ask_seconds)
            except NoAnswer:
                if asyncio.get_running_loop().time() >= end:
                    raise
            await asyncio.sleep(0.5)

    async def _reject(self, call: ToolCall, reason: str, cause: Cause) -> None:
        settled = call.settled("rejected", reason, told("rejected", reason))
        await self._store.propose(Proposal(call, reason), [cause.promise(settled)])

    async def on_permission_decided(self, decided: PermissionDecided, cause: Cause) -> None:
        """Make the proposal a command, or tell the planner why it will not run."""
        if decided.decision == "approved":
            message: Message = CommandReady(operation_id=decided.operation_id, action=decided.action)
        else:
            result = told(decided.decision, decided.reason)
            message = _call(cause.tenant, decided).settled(decided.decision, decided.reason, result)
        await self._store.decide(cause.tenant, decided, [cause.promise(message)])


def _canonical(tenant: str, principal: str, checked: domain.Checked, target: ResourceResolved | None) -> bytes:
    return CanonicalCommand(
        tenant=tenant,
        principal=principal,
        action=checked.action.name,
        action_version=checked.action.version,
        resource=checked.resource,
        arguments=checked.arguments,
        expected_revision=target.revision if target else None,
    ).encode()


def _call(tenant: str, decided: PermissionDecided) -> ToolCall:
    return ToolCall(
        tenant=tenant,
        operation_id=decided.operation_id,
        conversation_id=decided.conversation_id,
        turn_id=decided.turn_id,
        tool_call_id=decided.tool_call_id,
        action=decided.action,
    )
