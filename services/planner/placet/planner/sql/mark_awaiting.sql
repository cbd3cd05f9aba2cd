-- A card is out. If the answer was faster than this news, the call has ended and nothing changes (B22).
with waiting as (
    update tool_call set state = 'awaiting_approval'
     where tenant = :tenant and tool_call_id = :tool_call_id and state = 'proposed'
    returning turn_id),
marked as (
    update turn t set state = 'awaiting_approval'
      from waiting where t.tenant = :tenant and t.turn_id = waiting.turn_id and t.state = 'executing')
select exists (select from waiting) as changed
