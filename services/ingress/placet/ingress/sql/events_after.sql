-- What a viewer has not seen yet.
select e.event_id, e.type,
       coalesce(e.data, (select c.body from card c where c.tenant = e.tenant and c.interrupt_id = e.interrupt_id))::text as data
  from event e
 where e.tenant = :tenant and e.conversation_id = :conversation_id and e.event_id > :after
 order by e.event_id limit 100
