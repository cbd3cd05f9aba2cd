-- A message that stalled a turn is out of the way. Whoever sees the stall is told so, even if the row had gone before.
with gone as (
    delete from parked where tenant = :tenant and stall_id = :stall_id),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p)
select true as changed
