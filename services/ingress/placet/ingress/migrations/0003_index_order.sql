-- While a table has no statistics (new, restored), all its indexes look alike: one that begins with the tenant may be taken for
-- a row that the primary key would find, and the whole tenant is read. So of the whole ones only the primary key begins with it.
create index turn_by_conversation on turn_view (conversation_id, tenant);
create index card_by_conversation on card (conversation_id, tenant);
drop index turn_of_conversation, card_of_conversation;
