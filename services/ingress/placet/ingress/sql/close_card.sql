-- A card is decided once.
-- In the order of :conversation_id, whose row each of the news counts in.
with closed as (
    insert into card (tenant, interrupt_id, conversation_id, turn_id, state, decided_by, reason)
    values (:tenant, :interrupt_id, :conversation_id, :turn_id, :state, :decided_by, :reason)
    on conflict (tenant, interrupt_id) do update
       set state = excluded.state, decided_by = excluded.decided_by, reason = excluded.reason
     where card.state = 'pending'
    returning 1),
counted as (
    update conversation set last_event = last_event + 1
     where tenant = :tenant and conversation_id = :conversation_id and exists (select from closed)
    returning last_event),
told as (
    insert into event (tenant, conversation_id, event_id, type, data)
    select :tenant, :conversation_id, last_event, :type, :data::jsonb from counted)
select exists (select from closed) as changed
