-- Open questions whose time is over, of every tenant; without their bytes, which nobody needs to say so.
select tenant, interrupt_id, operation_id, conversation_id, turn_id, tool_call_id, action, requested_by, digest, scope,
       second_person, rule, policy_version, state, true as past, expires_at, decided_by, decided_at, comment, traceparent
  from approval
 where decided_at is null and expires_at <= statement_timestamp()
 order by expires_at limit 100
