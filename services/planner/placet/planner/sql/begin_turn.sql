-- A turn begins once, with the user's message at the end of the conversation.
with begun as (
    insert into turn (tenant, turn_id, conversation_id, principal, mandate)
    values (:tenant, :turn_id, :conversation_id, :principal, :mandate)
    on conflict do nothing
    returning 1),
said as (
    insert into message (tenant, conversation_id, position, turn_id, role, text)
    select :tenant, :conversation_id,
           coalesce((select max(position) + 1 from message where tenant = :tenant and conversation_id = :conversation_id), 0),
           :turn_id, 'user', :text
     where exists (select from begun)
    returning position),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from begun))
select exists (select from begun) as changed, (select position from said) as position
