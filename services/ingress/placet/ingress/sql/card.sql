-- One card of the tenant.
select interrupt_id, body, state, decided_by, reason, shown_at from card
 where tenant = :tenant and interrupt_id = :interrupt_id and body is not null
