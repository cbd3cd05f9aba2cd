-- Ask the planner to take up again what a turn stands still for; once a minute is often enough, until it has failed again.
with retried as (
    update stall set retried_at = clock_timestamp()
     where tenant = :tenant and stall_id = any(:stalls::text[]) and not over
       and (retried_at is null or retried_at < clock_timestamp() - interval '1 minute')
    returning 1),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from retried))
select exists (select from retried) as changed
