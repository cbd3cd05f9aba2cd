-- What a viewer has not seen yet.
select e.event_id, e.type, coalesce(e.data, c.body)::text as data
  from event e left join card c using (tenant, interrupt_id)
 where e.tenant = :tenant and e.conversation_id = :conversation_id and e.event_id > :after
 order by e.event_id limit 100
