-- While a table has no statistics (new, restored), all its indexes look alike: one that begins with the tenant may be taken for
-- a row that the primary key would find, and the whole tenant is read. So of the whole ones only the primary key begins with it.
create index tool_call_by_turn on tool_call (turn_id, tenant);
drop index tool_call_of_turn;
