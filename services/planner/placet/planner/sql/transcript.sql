-- The conversation as the model sees it.
select m.position, m.role, m.text, m.tool_call_id, m.outcome,
       (select coalesce(json_agg(json_build_object('tool_call_id', c.tool_call_id, 'action', c.action,
                   'arguments', c.arguments) order by c.ordinal), '[]')
          from tool_call c where m.role = 'assistant' and c.tenant = m.tenant and c.turn_id = m.turn_id
           and c.position = m.position) as calls
  from message m
 where m.tenant = :tenant and m.conversation_id = :conversation_id
 order by m.position
