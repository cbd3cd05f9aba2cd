-- A decided proposal enters the ledger: as a command that waits to be claimed, or as one that ended and never runs.
-- The digest must be the one that was decided: a decision about other bytes finds no proposal, and nothing changes.
with decided as (
    insert into command (tenant, operation_id, interrupt_id, digest, policy_version, rule, decided_by, expires_at,
                         state, reason, settled_at)
    select p.tenant, p.operation_id, :interrupt_id, p.digest, :policy_version, :rule, :decided_by, :expires_at,
           :state, :reason, case when :state = 'pending' then null else clock_timestamp() end
      from proposal p
     where p.tenant = :tenant and p.operation_id = :operation_id and p.tool_call_id = :tool_call_id
       and p.digest = :digest and p.verdict = 'asked'
    on conflict do nothing
    returning 1),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from decided))
select exists (select from decided) as changed
