-- A stall is over. If this news was faster than that of the stall itself, it stays over.
with known as (
    insert into stall (tenant, stall_id, conversation_id, turn_id, over)
    values (:tenant, :stall_id, :conversation_id, :turn_id, true)
    on conflict (tenant, stall_id) do update set over = true where not stall.over
    returning 1),
counted as (
    update conversation set last_event = last_event + 1
     where tenant = :tenant and conversation_id = :conversation_id and exists (select from known)
    returning last_event),
told as (
    insert into event (tenant, conversation_id, event_id, type, data)
    select :tenant, :conversation_id, last_event, :type, :data::jsonb from counted)
select exists (select from known) as changed
