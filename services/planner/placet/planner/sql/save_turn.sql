-- Everything that one step changes, if the turn is still as it was read: its state, what was said, which calls there are,
-- which have ended, and what is promised.
with moved as (
    update turn set state = :state, reason = :reason, revision = revision + 1
     where tenant = :tenant and turn_id = :turn_id and revision = :revision
    returning conversation_id),
said as (
    insert into message (tenant, conversation_id, position, turn_id, role, text, tool_call_id, outcome)
    select :tenant, moved.conversation_id, m.position, :turn_id, m.role, m.text, m.tool_call_id, m.outcome
      from moved, jsonb_to_recordset(:messages::jsonb)
           as m(position int, role text, text text, tool_call_id text, outcome text)),
called as (
    insert into tool_call (tenant, tool_call_id, turn_id, position, ordinal, hint, action, arguments, effect, state)
    select :tenant, c.tool_call_id, :turn_id, c.position, c.ordinal, c.hint, c.action, c.arguments, c.effect, c.state
      from moved, jsonb_to_recordset(:calls::jsonb)
           as c(tool_call_id text, position int, ordinal int, hint text, action text, arguments text, effect text, state text)),
changed as (
    update tool_call c set state = :states::jsonb ->> c.tool_call_id
      from moved
     where c.tenant = :tenant and c.turn_id = :turn_id and :states::jsonb ? c.tool_call_id),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from moved))
select exists (select from moved) as changed
