-- One worker gets the command, with a lease and a higher fence. The last word on time is the database's: the decision
-- must still be valid, and a command that may have had its effect is repeated only while the provider honours its key.
-- No request begins behind either, whatever the lease, so a claim with less than a second left would be of no use.
with claimed as (
    update command
       set state = 'dispatching', claimed_by = :worker, fence = fence + 1,
           lease_until = clock_timestamp() + :lease_seconds * interval '1 second',
           replay_until = case when uncertain = '' then clock_timestamp() + :replay_seconds * interval '1 second'
                               else replay_until end
     where tenant = :tenant and operation_id = :operation_id and state = 'pending'
       and expires_at > clock_timestamp() + interval '1 second'
       and (uncertain = '' or replay_until > clock_timestamp() + interval '1 second')
    returning fence, uncertain, extract(epoch from least(expires_at, replay_until) - clock_timestamp()) as seconds_left)
select exists (select from claimed) as changed, (select fence from claimed) as fence,
       (select uncertain from claimed) as uncertain,
       (select greatest(seconds_left, 0)::double precision from claimed) as seconds_left
