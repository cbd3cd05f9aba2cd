-- One card of the tenant.
select body, state, decided_by, reason from card
 where tenant = :tenant and interrupt_id = :interrupt_id and body is not null
