-- Nobody lists open questions by tenant here: cards are shown from ingress' own tables. Every statement of the service finds
-- its row by interrupt_id, or by approval_due.
drop index approval_open;
