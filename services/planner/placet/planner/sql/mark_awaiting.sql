-- A card is out. If the answer was faster than this news, the call has ended and nothing changes (B22).
-- The turn is not touched: it executes, whatever its calls wait for, and goes on when the last of them has its result.
with waiting as (
    update tool_call set state = 'awaiting_approval'
     where tenant = :tenant and tool_call_id = :tool_call_id and state = 'proposed'
    returning 1)
select exists (select from waiting) as changed
