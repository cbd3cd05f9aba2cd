-- Promises that nobody has kept in time are taken for a while; whoever takes them and dies lets them fall due again.
update outbox
   set available_at = clock_timestamp() + :hold_seconds * interval '1 second', attempts = attempts + 1
 where message_id = any(array(
       select message_id from outbox
        where available_at < statement_timestamp() - :grace_seconds * interval '1 second'
        order by available_at limit :most
          for update skip locked))
returning message_id, wire, body, traceparent, attempts
