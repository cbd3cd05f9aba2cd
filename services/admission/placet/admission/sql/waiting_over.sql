-- Commands that nobody claimed before their time ran out, or before the provider forgot the key of an uncertain one.
select c.tenant, c.operation_id, c.uncertain, p.conversation_id, p.turn_id, p.tool_call_id, p.action
  from command c join proposal p using (tenant, operation_id)
 where c.state = 'pending'
   and (c.expires_at <= clock_timestamp() or c.uncertain <> '' and c.replay_until <= clock_timestamp())
 order by c.expires_at limit 100
