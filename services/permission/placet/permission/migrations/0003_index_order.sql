-- While a table has no statistics (new, restored), all its indexes look alike: one that begins with the tenant may be taken for
-- a row that the primary key would find, and the whole tenant is read. So of the whole ones only the primary key begins with it.
alter table approval
    drop constraint a_tool_call_is_asked_about_once,
    add constraint a_tool_call_is_asked_about_once unique (tool_call_id, conversation_id, tenant);

-- For the same reason a partial index is told by a condition that only the looks for what is due name: by one that the writes
-- name too (the state), a write may be given the index, and reads all that it holds.
create index approval_open_until on approval (expires_at) where decided_at is null;
drop index approval_due;
