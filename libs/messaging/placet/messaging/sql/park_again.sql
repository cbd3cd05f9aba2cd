-- A parked message was tried again in vain.
with kept as (
    update parked set attempts = attempts + 1, reason = :reason
     where parked_id = :parked_id and attempts = :attempts
    returning 1),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from kept))
select exists (select from kept) as changed
