-- The planner's news of a stall: another attempt has failed, or it is over. Each attempt is told once, in its order, and
-- nothing after the end, even if that was faster than what was before it.
-- In the order of :conversation_id, whose row each of the news counts in.
with known as (
    insert into stall (tenant, stall_id, conversation_id, turn_id, attempt, reason, over)
    values (:tenant, :stall_id, :conversation_id, :turn_id, :attempt, :reason, :over)
    on conflict (tenant, stall_id) do update
       set attempt = excluded.attempt, reason = excluded.reason, over = excluded.over, retried_at = null
     where not stall.over and (excluded.over or stall.attempt < excluded.attempt)
    returning 1),
counted as (
    update conversation set last_event = last_event + 1
     where tenant = :tenant and conversation_id = :conversation_id and exists (select from known)
    returning last_event),
told as (
    insert into event (tenant, conversation_id, event_id, type, data)
    select :tenant, :conversation_id, last_event, :type, :data::jsonb from counted)
select exists (select from known) as changed
