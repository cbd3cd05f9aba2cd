-- A turn with its calls in the model's order, and where the conversation goes on.
select t.conversation_id, t.principal, t.mandate, t.state, t.reason, t.revision,
       (select count(*) from message m where m.tenant = t.tenant and m.conversation_id = t.conversation_id
           and m.turn_id = t.turn_id and m.role = 'assistant') as steps,
       (select coalesce(max(position) + 1, 0) from message m
         where m.tenant = t.tenant and m.conversation_id = t.conversation_id) as next_position,
       (select coalesce(json_agg(json_build_object('tool_call_id', c.tool_call_id, 'hint', c.hint, 'action', c.action,
                   'position', c.position, 'arguments', c.arguments, 'effect', c.effect, 'state', c.state) order by c.position, c.ordinal), '[]')
          from tool_call c where c.tenant = t.tenant and c.turn_id = t.turn_id) as calls
  from turn t
 where t.tenant = :tenant and t.turn_id = :turn_id
