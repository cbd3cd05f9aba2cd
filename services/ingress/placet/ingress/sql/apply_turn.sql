-- The planner's news of a turn, in the planner's order: state, messages, and one event for viewers. News that came early
-- waits for what is before it, unless `late` says that it has waited long enough.
-- In the order of :conversation_id, whose row each of the news counts in.
with moved as (
    update turn_view set state = :state, reason = :reason, revision = :revision
     where tenant = :tenant and turn_id = :turn_id
       and (revision = :revision - 1 or :late and revision < :revision)
    returning 1),
said as (
    insert into message_view (tenant, conversation_id, position, turn_id, body)
    select :tenant, :conversation_id, (m ->> 'position')::int, :turn_id, m from jsonb_array_elements(:messages::jsonb) m
     where exists (select from moved) or :late
        or exists (select from turn_view where tenant = :tenant and turn_id = :turn_id and revision >= :revision)
    on conflict do nothing
    returning 1),
counted as (
    update conversation set last_event = last_event + 1
     where tenant = :tenant and conversation_id = :conversation_id
       and (exists (select from moved) or exists (select from said))
    returning last_event),
told as (
    insert into event (tenant, conversation_id, event_id, type, data)
    select :tenant, :conversation_id, last_event, :type, :data::jsonb from counted)
select exists (select from counted) as changed,
       exists (select from turn_view where tenant = :tenant and turn_id = :turn_id and revision < :revision - 1) as early
