-- A command that may not be claimed any more: its decision was revoked, it ran out of time, or it kept losing its workers.
with ended as (
    update command set state = :state, reason = :reason, settled_at = clock_timestamp()
     where tenant = :tenant and operation_id = :operation_id and state = 'pending'
    returning 1),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from ended))
select exists (select from ended) as changed
