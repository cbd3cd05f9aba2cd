-- Nobody answered in time. Time decides for nobody: there is no decided_by.
with expired as (
    update approval set state = 'expired', decided_at = clock_timestamp()
     where interrupt_id = :interrupt_id and state = 'pending' and expires_at <= clock_timestamp()
    returning 1),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from expired))
select exists (select from expired) as changed
