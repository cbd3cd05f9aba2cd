-- One worker gets the command, with a lease and a higher fence; asking again for what it got, it gets the same.
-- The last word on expiry is the database's clock.
with claimed as (
    update command
       set state = 'dispatching', claimed_by = :worker,
           fence = fence + case when state = 'pending' then 1 else 0 end,
           lease_until = clock_timestamp() + :lease_seconds * interval '1 second',
           replay_until = coalesce(replay_until, clock_timestamp() + :replay_seconds * interval '1 second')
     where tenant = :tenant and operation_id = :operation_id and expires_at > clock_timestamp()
       and (state = 'pending' or state = 'dispatching' and claimed_by = :worker)
    returning fence, uncertain)
select exists (select from claimed) as changed, (select fence from claimed) as fence,
       (select uncertain from claimed) as uncertain
