-- A delivery that is parked a second time (its acknowledgement was lost) stands there once, and its news is told once.
with kept as (
    insert into parked (message_id, exchange, routing_key, user_id, headers, body, reason, tenant, turn_id, stall_id)
    values (:message_id, :exchange, :routing_key, :user_id, :headers::jsonb, :body, :reason, :tenant, :turn_id, :stall_id)
    on conflict do nothing
    returning 1),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from kept))
select exists (select from kept) as changed
