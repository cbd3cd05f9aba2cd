-- A card is shown once. If its decision arrived before it, the decision stays.
-- In the order of :conversation_id, whose row each of the news counts in.
with shown as (
    insert into card (tenant, interrupt_id, conversation_id, turn_id, body, state)
    values (:tenant, :interrupt_id, :conversation_id, :turn_id, :data::jsonb, 'pending')
    on conflict (tenant, interrupt_id) do update set body = excluded.body where card.body is null
    returning 1),
counted as (
    update conversation set last_event = last_event + 1
     where tenant = :tenant and conversation_id = :conversation_id and exists (select from shown)
    returning last_event),
told as (
    insert into event (tenant, conversation_id, event_id, type, interrupt_id)
    select :tenant, :conversation_id, last_event, :type, :interrupt_id from counted)
select exists (select from shown) as changed
