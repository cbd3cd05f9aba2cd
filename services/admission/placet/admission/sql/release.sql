-- A claim goes back, for another worker: nothing was sent under it, or its key may be replayed and :uncertain says why.
-- Either way it stands among the attempts; that nothing was sent, also when the claim is over by now.
with released as (
    update command set state = 'pending', lease_until = null, claimed_by = null,
           uncertain = case when :uncertain = '' then uncertain else :uncertain end
     where tenant = :tenant and operation_id = :operation_id and state = 'dispatching' and fence = :fence
    returning 1),
reported as (
    insert into attempt (tenant, operation_id, fence, worker, requests, outcome, reason, receipt, late)
    select tenant, operation_id, :fence, :worker, :requests, :outcome, :reason, null, not exists (select from released)
      from command where tenant = :tenant and operation_id = :operation_id and fence >= :fence
       and (:outcome = 'not_sent' or exists (select from released))
    on conflict do nothing),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from released))
select exists (select from released) as changed
