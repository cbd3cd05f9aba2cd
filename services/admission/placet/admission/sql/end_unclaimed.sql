-- A command that may not be claimed any more: its decision was revoked, or it ran out of time. Whether it may already have
-- had its effect must be as it was when the promises were made.
with ended as (
    update command set state = :state, reason = :reason, settled_at = clock_timestamp()
     where tenant = :tenant and operation_id = :operation_id and state = 'pending' and uncertain = :uncertain
    returning 1),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from ended))
select exists (select from ended) as changed
