-- What a turn waits for, in the order in which it failed.
select stall_id, routing_key, body, attempts from parked
 where tenant = :tenant and turn_id = :turn_id
 order by parked_id
