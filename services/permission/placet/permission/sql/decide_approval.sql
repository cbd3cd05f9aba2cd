-- The one write by which a person decides: still pending, not expired by the database's clock, these very bytes (P4).
-- Of two answers at once one finds the row pending; the other finds it decided.
with decided as (
    update approval
       set state = :state, decided_by = :decided_by, decided_at = clock_timestamp(), comment = :comment
     where interrupt_id = :interrupt_id and tenant = :tenant and digest = :digest
       and state = 'pending' and expires_at > clock_timestamp()
    returning decided_at),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from decided))
select exists (select from decided) as changed, (select decided_at from decided) as decided_at
