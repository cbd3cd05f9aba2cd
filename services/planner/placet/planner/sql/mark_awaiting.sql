-- A card is out. If the answer was faster than this news, the call has ended and nothing changes (B22).
-- The turn is locked before its call, as everywhere, so that no two statements wait for each other.
with locked as (
    select t.turn_id from turn t join tool_call c using (tenant, turn_id)
     where c.tenant = :tenant and c.tool_call_id = :tool_call_id
       for update of t),
waiting as (
    update tool_call c set state = 'awaiting_approval'
      from locked where c.tenant = :tenant and c.tool_call_id = :tool_call_id and c.state = 'proposed'
    returning c.turn_id),
marked as (
    update turn t set state = 'awaiting_approval'
      from waiting where t.tenant = :tenant and t.turn_id = waiting.turn_id and t.state = 'executing')
select exists (select from waiting) as changed
