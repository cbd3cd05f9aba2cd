-- Commands that nobody claimed before their time ran out, or before the provider forgot the key of an uncertain one.
select c.tenant, c.operation_id, c.uncertain, p.conversation_id, p.turn_id, p.tool_call_id, p.action
  from command c join proposal p using (tenant, operation_id)
 where c.settled_at is null and c.lease_until is null
   and least(c.expires_at, case when c.uncertain <> '' then c.replay_until end) <= statement_timestamp()
 order by least(c.expires_at, case when c.uncertain <> '' then c.replay_until end) limit 100
