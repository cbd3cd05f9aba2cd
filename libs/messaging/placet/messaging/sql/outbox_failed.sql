-- The broker did not take these: say why, and come back later.
update outbox o
   set last_error = f.error, available_at = clock_timestamp() + f.wait * interval '1 second'
  from unnest(:message_ids::text[], :errors::text[], :waits::float8[]) as f(message_id, error, wait)
 where o.message_id = f.message_id
