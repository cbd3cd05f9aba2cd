-- The tenant's open cards, oldest first, from behind a cursor.
select interrupt_id, body, state, decided_by, reason, shown_at from card
 where tenant = :tenant and state = 'pending' and body is not null and (shown_at, interrupt_id) > (:after_time, :after_id)
 order by shown_at, interrupt_id limit :most
