-- A command with what its messages need.
select c.operation_id, c.interrupt_id, c.digest, c.state, c.expires_at <= clock_timestamp() as expired,
       c.uncertain, p.conversation_id, p.turn_id, p.tool_call_id, p.action, p.canonical
  from command c join proposal p using (tenant, operation_id)
 where c.tenant = :tenant and c.operation_id = :operation_id
