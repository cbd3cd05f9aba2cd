-- The broker has confirmed these messages: the promises are kept.
delete from outbox where message_id = any(:message_ids::text[])
