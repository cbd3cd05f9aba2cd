-- An allowed proposal becomes a command: ledger row and promise, or neither. The digest must be the one that was decided.
-- A repeated decision finds the command; a decision about other bytes finds no proposal, and nothing changes.
with admitted as (
    insert into command (tenant, operation_id, interrupt_id, digest, policy_version, rule, decided_by, expires_at)
    select p.tenant, p.operation_id, :interrupt_id, p.digest, :policy_version, :rule, :decided_by, :expires_at
      from proposal p
     where p.tenant = :tenant and p.operation_id = :operation_id and p.tool_call_id = :tool_call_id
       and p.digest = :digest and p.verdict = 'asked'
    on conflict do nothing
    returning 1),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from admitted))
select exists (select from admitted) as changed
