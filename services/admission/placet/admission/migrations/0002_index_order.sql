-- While a table has no statistics (new, restored), all its indexes look alike: one that begins with the tenant may be taken for
-- a row that the primary key would find, and the whole tenant is read. So of the whole ones only the primary key begins with it.
alter table proposal
    drop constraint a_tool_call_is_proposed_once,
    add constraint a_tool_call_is_proposed_once unique (tool_call_id, tenant);

-- For the same reason a partial index is told by a condition that only the looks for what is due name: by one that the writes
-- name too (the state), a write may be given the index, and reads all that it holds.
create index command_leased_until on command (lease_until) where settled_at is null;

-- A command that waits is over with its decision, or with the provider's memory of the key of an uncertain one.
create index command_waiting_until on command (least(expires_at, case when uncertain <> '' then replay_until end))
 where settled_at is null and lease_until is null;
drop index command_leased, command_waiting;
