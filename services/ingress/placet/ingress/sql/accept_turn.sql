-- Accept a turn, or say why not: the same key again, somebody else's conversation, or a turn under way.
with known as (
    select turn_id, conversation_id, fingerprint from accepted_turn
     where tenant = :tenant and principal = :principal and idempotency_key = :idempotency_key),
foreign_owner as (
    select from conversation
     where tenant = :tenant and conversation_id = :conversation_id and owner <> :principal),
busy as (
    select from turn_view
     where tenant = :tenant and conversation_id = :conversation_id
       and state not in ('completed', 'failed', 'cancelled', 'budget_exhausted')),
accepted as (
    insert into accepted_turn (tenant, principal, idempotency_key, fingerprint, turn_id, conversation_id)
    select :tenant, :principal, :idempotency_key, :fingerprint, :turn_id, :conversation_id
     where not exists (select from known) and not exists (select from foreign_owner) and not exists (select from busy)
    returning 1),
begun as (
    insert into conversation (tenant, conversation_id, owner)
    select :tenant, :conversation_id, :principal where exists (select from accepted)
    on conflict do nothing),
seen as (
    insert into turn_view (tenant, turn_id, conversation_id)
    select :tenant, :turn_id, :conversation_id where exists (select from accepted)),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from accepted))
select exists (select from accepted) as changed,
       exists (select from foreign_owner) as foreign_owner,
       (select turn_id from known) as known_turn,
       (select conversation_id from known) as known_conversation,
       (select fingerprint from known) as known_fingerprint
