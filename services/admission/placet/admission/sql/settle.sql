-- The outcome under the current fence ends the command. Under an old fence a report is evidence: it is kept, and a success
-- settles what is unknown, or uncertain and in nobody's hands; but it never changes an end. That one claim failed proves
-- nothing of the others.
with settled as (
    update command
       set state = :state, reason = :reason, receipt = :receipt, result = :result::jsonb, lease_until = null,
           settled_at = clock_timestamp()
     where tenant = :tenant and operation_id = :operation_id
       and (state = 'dispatching' and fence = :fence
            or state = 'unknown' and fence = :fence and uncertain = '' and :state = 'failed'
            or (state = 'unknown' or state = 'pending' and uncertain <> '') and fence >= :fence and :state = 'succeeded')
    returning 1),
reported as (
    insert into attempt (tenant, operation_id, fence, worker, requests, outcome, reason, receipt, late)
    select tenant, operation_id, :fence, :worker, :requests, :state, :reason, :receipt,
           not (state = 'dispatching' and fence = :fence)
      from command where tenant = :tenant and operation_id = :operation_id and fence >= :fence
    on conflict do nothing),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from settled))
select exists (select from settled) as changed
