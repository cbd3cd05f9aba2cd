-- What a viewer has not seen yet.
select event_id, type, data::text as data from event
 where tenant = :tenant and conversation_id = :conversation_id and event_id > :after
 order by event_id limit 100
