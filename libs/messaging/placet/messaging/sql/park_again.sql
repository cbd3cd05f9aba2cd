-- A message that stalls a turn was tried again in vain. Of two tries at once, one is told.
with kept as (
    update parked set attempts = attempts + 1, reason = :reason
     where tenant = :tenant and stall_id = :stall_id and attempts = :attempts
    returning 1),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from kept))
select exists (select from kept) as changed
