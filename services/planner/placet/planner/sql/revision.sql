-- How often a turn has changed.
select revision from turn where tenant = :tenant and turn_id = :turn_id
