-- Whether this conversation is there for this principal.
select from conversation where tenant = :tenant and conversation_id = :conversation_id and owner = :owner
