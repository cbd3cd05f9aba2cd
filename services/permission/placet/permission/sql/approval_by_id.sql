-- A question of this tenant. Another tenant's does not exist.
select *, expires_at <= clock_timestamp() as past from approval where interrupt_id = :interrupt_id and tenant = :tenant
