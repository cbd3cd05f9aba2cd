-- Store the question once, with what it promises: the card, or a rule's decision. A second delivery finds it.
with opened as (
    insert into approval (tenant, interrupt_id, operation_id, conversation_id, turn_id, tool_call_id, action, requested_by,
                          digest, canonical, scope, second_person, rule, policy_version, state, expires_at,
                          decided_by, decided_at, comment, traceparent)
    values (:tenant, :interrupt_id, :operation_id, :conversation_id, :turn_id, :tool_call_id, :action, :requested_by,
            :digest, :canonical, :scope, :second_person, :rule, :policy_version, :state, :expires_at,
            :decided_by, case when :state = 'pending' then null else clock_timestamp() end, :comment, :traceparent)
    on conflict do nothing
    returning 1),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from opened))
select exists (select from opened) as changed
