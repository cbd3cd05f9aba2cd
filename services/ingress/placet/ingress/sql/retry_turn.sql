-- Ask the planner to go on with a turn of this owner that stands still.
with turn as (
    select revision <= stalled_at and state not in ('completed', 'failed', 'cancelled', 'budget_exhausted') as stalled
      from turn_view join conversation using (tenant, conversation_id)
     where tenant = :tenant and conversation_id = :conversation_id and turn_id = :turn_id and owner = :owner),
promised as (
    insert into outbox (message_id, wire, body, traceparent)
    select p.* from unnest(:promises::promise[]) p where exists (select from turn where stalled))
select exists (select from turn where stalled) as changed, exists (select from turn) as found
