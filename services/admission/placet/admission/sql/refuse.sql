-- A proposal that was denied, or that nobody answered in time: an ended command, that never ran and never will.
with refused as (
    insert into command (tenant, operation_id, interrupt_id, digest, policy_version, rule, decided_by, expires_at,
                         state, reason, settled_at)
    select p.tenant, p.operation_id, :interrupt_id, p.digest, :policy_version, :rule, :decided_by, :expires_at,
           :state, :reason, clock_timestamp()
      from proposal p
     where p.tenant = :tenant and p.operation_id = :operation_id and p.tool_call_id = :tool_call_id
       and p.digest = :digest and p.verdict = 'asked'
    on conflict do nothing
    returning 1),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from refused))
select exists (select from refused) as changed
