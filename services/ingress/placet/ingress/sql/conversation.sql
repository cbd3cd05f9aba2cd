-- A conversation of its owner, whole. Anybody else's does not exist.
select c.last_event,
       (select coalesce(json_agg(json_build_object('turn_id', t.turn_id, 'state', t.state, 'reason', t.reason,
                   'stalled', (select min(s.reason) from stall s where s.tenant = t.tenant and s.turn_id = t.turn_id
                                   and not s.over))
                   order by t.accepted_at, t.turn_id), '[]')
          from turn_view t where t.tenant = c.tenant and t.conversation_id = c.conversation_id) as turns,
       (select coalesce(json_agg(m.body || jsonb_build_object('turn_id', m.turn_id) order by m.position), '[]')
          from message_view m where m.tenant = c.tenant and m.conversation_id = c.conversation_id) as messages,
       (select coalesce(json_agg(json_build_object('turn_id', k.turn_id, 'state', k.state, 'decided_by', k.decided_by,
                   'reason', k.reason, 'card', k.body) order by k.shown_at), '[]')
          from card k where k.tenant = c.tenant and k.conversation_id = c.conversation_id and k.body is not null) as cards
  from conversation c
 where c.tenant = :tenant and c.conversation_id = :conversation_id and c.owner = :owner
