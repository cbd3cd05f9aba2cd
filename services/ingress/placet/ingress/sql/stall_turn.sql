-- The planner cannot go on at this revision of the turn. Each attempt is told once; older ones were told already.
with stalled as (
    update turn_view set stalled_at = :revision, stalled_attempt = :attempt, stalled_reason = :reason
     where tenant = :tenant and turn_id = :turn_id and conversation_id = :conversation_id
       and (stalled_at, stalled_attempt) < (:revision, :attempt)
    returning 1),
counted as (
    update conversation set last_event = last_event + 1
     where tenant = :tenant and conversation_id = :conversation_id and exists (select from stalled)
    returning last_event),
told as (
    insert into event (tenant, conversation_id, event_id, type, data)
    select :tenant, :conversation_id, last_event, :type, :data::jsonb from counted)
select exists (select from stalled) as changed
