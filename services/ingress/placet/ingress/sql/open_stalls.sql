-- Whether this turn is there for this owner, and what it stands still for.
select coalesce(array_agg(s.stall_id) filter (where s.stall_id is not null), '{}') as stalls
  from turn_view t join conversation c using (tenant, conversation_id)
  left join stall s on s.tenant = t.tenant and s.turn_id = t.turn_id and not s.over
 where t.tenant = :tenant and t.conversation_id = :conversation_id and t.turn_id = :turn_id and c.owner = :owner
having count(*) > 0
