-- A parked message has been handled.
delete from parked where parked_id = :parked_id
