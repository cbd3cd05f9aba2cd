-- The broker did not take these: say why, and come back later. The last condition follows from the one before it; by it the
-- rows are found in the primary key, and the rest of the outbox is not read.
update outbox o
   set last_error = f.error, available_at = clock_timestamp() + f.wait * interval '1 second'
  from unnest(:message_ids::text[], :errors::text[], :waits::float8[]) as f(message_id, error, wait)
 where o.message_id = f.message_id and o.message_id = any(:message_ids::text[])
