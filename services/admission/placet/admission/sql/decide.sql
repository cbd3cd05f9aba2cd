-- A decided proposal enters the ledger: as a command that waits to be claimed, or as one that ended and never runs.
-- The digest must be the one that was decided: a decision about other bytes finds no proposal, and nothing changes (A4).
with asked as (
    select tenant, operation_id, digest from proposal
     where tenant = :tenant and operation_id = :operation_id and tool_call_id = :tool_call_id
       and digest = :digest and verdict = 'asked'),
decided as (
    insert into command (tenant, operation_id, interrupt_id, digest, policy_version, rule, decided_by, expires_at,
                         state, reason, settled_at)
    select tenant, operation_id, :interrupt_id, digest, :policy_version, :rule, :decided_by, :expires_at,
           :state, :reason, case when :state = 'pending' then null else clock_timestamp() end
      from asked
    on conflict do nothing
    returning 1),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from decided))
select exists (select from decided) as changed, exists (select from asked) as asked
