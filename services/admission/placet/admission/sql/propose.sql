-- Record a proposal once, asked about or rejected. A second delivery finds it and changes nothing.
with proposed as (
    insert into proposal (tenant, operation_id, conversation_id, turn_id, tool_call_id, verdict, reason, action, digest, canonical)
    values (:tenant, :operation_id, :conversation_id, :turn_id, :tool_call_id, :verdict, :reason, :action, :digest, :canonical)
    on conflict do nothing
    returning 1),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from proposed))
select exists (select from proposed) as changed
