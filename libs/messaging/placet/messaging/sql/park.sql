-- A delivery that is parked a second time (its acknowledgement was lost) stands there once.
insert into parked (message_id, exchange, routing_key, user_id, headers, body, reason)
values (:message_id, :exchange, :routing_key, :user_id, :headers::jsonb, :body, :reason)
on conflict do nothing
