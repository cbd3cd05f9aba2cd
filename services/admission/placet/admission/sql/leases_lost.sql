-- Commands whose worker has gone silent.
select c.tenant, c.operation_id, c.fence, c.claimed_by, p.conversation_id, p.turn_id, p.tool_call_id, p.action,
       coalesce(c.replay_until > clock_timestamp(), false) as may_replay
  from command c join proposal p using (tenant, operation_id)
 where c.settled_at is null and c.lease_until < statement_timestamp()
 order by c.lease_until limit 100
