-- A claim under which nothing was sent goes back, for another worker.
with released as (
    update command set state = 'pending', lease_until = null, claimed_by = null
     where tenant = :tenant and operation_id = :operation_id and state = 'dispatching' and fence = :fence
    returning 1),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from released))
select exists (select from released) as changed
