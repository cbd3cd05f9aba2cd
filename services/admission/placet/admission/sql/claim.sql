-- One worker gets the command, with a lease and a higher fence. The last word on time is the database's: the decision
-- must still be valid, and a command that may have had its effect is repeated only while the provider honours its key.
with claimed as (
    update command
       set state = 'dispatching', claimed_by = :worker, fence = fence + 1,
           lease_until = clock_timestamp() + :lease_seconds * interval '1 second',
           replay_until = coalesce(replay_until, clock_timestamp() + :replay_seconds * interval '1 second')
     where tenant = :tenant and operation_id = :operation_id and state = 'pending' and expires_at > clock_timestamp()
       and (uncertain = '' or replay_until > clock_timestamp())
    returning fence, uncertain)
select exists (select from claimed) as changed, (select fence from claimed) as fence,
       (select uncertain from claimed) as uncertain
