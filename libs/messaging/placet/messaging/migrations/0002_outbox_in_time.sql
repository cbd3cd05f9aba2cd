-- After a long outage the relay takes promises from a full outbox, a batch at a time: without order each look reads all.
create index outbox_in_time on outbox (available_at);
