-- What every service with a database has for messaging.

-- A promise: a message that a commit owes to the broker.
create type promise as (message_id text, wire text, body bytea, traceparent text);

create table outbox (
    message_id   text primary key,
    wire         text not null,
    body         bytea not null,
    traceparent  text not null,
    created_at   timestamptz not null default clock_timestamp(),
    available_at timestamptz not null default clock_timestamp(),
    attempts     int not null default 0,
    last_error   text
);

comment on table outbox is 'One row is one promise. Gone when the broker has confirmed the message, and not before.';

create table parked (
    parked_id   bigint generated always as identity primary key,
    message_id  text,
    exchange    text not null,
    routing_key text not null,
    user_id     text,
    headers     jsonb not null,
    body        bytea not null,
    reason      text not null,
    parked_at   timestamptz not null default clock_timestamp()
);

create unique index one_delivery_is_parked_once on parked (message_id, md5(reason), sha256(body));

comment on table parked is 'Deliveries that could not be read or kept failing, with their bytes as they came, but for a person''s token.';
