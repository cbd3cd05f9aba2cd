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
    tenant      text,                              -- of a message whose publisher was believed, and of no other
    turn_id     text,                              -- the turn that stands still without it, likewise
    stall_id    text unique,                       -- how others name this row, likewise
    attempts    int not null default 1,            -- the first delivery, and each retry that failed too
    parked_at   timestamptz not null default clock_timestamp()
);

create index parked_of_turn on parked (tenant, turn_id) where turn_id is not null;

create unique index one_delivery_is_parked_once on parked (message_id, md5(reason), sha256(body)) where stall_id is null;
create unique index one_message_stalls_a_turn_once on parked (message_id, sha256(body)) where stall_id is not null;

comment on table parked is 'Deliveries that could not be read or kept failing, with their bytes as they came, but for a person''s token.';
