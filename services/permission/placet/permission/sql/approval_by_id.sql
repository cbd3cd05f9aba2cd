-- A question of this tenant. Another tenant's does not exist.
select tenant, interrupt_id, operation_id, conversation_id, turn_id, tool_call_id, action, requested_by, digest, scope,
       second_person, rule, policy_version, state, expires_at <= clock_timestamp() as past, expires_at, decided_by, decided_at,
       comment, traceparent
  from approval
 where interrupt_id = :interrupt_id and tenant = :tenant
