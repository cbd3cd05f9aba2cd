-- The time that counts is the database's: a question's expiry is compared with it ever after.
select clock_timestamp() as now
