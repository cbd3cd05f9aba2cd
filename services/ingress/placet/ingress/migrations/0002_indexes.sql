-- A conversation's own turns and cards are found without those of the rest of its tenant.
create index turn_of_conversation on turn_view (tenant, conversation_id);
create index card_of_conversation on card (tenant, conversation_id);

-- No statement asks for the cards of a turn.
drop index card_of_turn;
