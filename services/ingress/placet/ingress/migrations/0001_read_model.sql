-- Accepted turns, and the read model that clients see. All but accepted_turn can be made again from the services' messages.

create table conversation (
    tenant          text not null,
    conversation_id text not null,
    owner           text not null,
    last_event      bigint not null default 0,
    begun_at        timestamptz not null default clock_timestamp(),
    primary key (tenant, conversation_id)
);

create table accepted_turn (
    tenant          text not null,
    principal       text not null,
    idempotency_key text not null,
    fingerprint     text not null,                 -- of the request: the same key with another body is a conflict
    turn_id         text not null,
    conversation_id text not null,
    accepted_at     timestamptz not null default clock_timestamp(),
    primary key (tenant, principal, idempotency_key)
);

create table turn_view (
    tenant          text not null,
    turn_id         text not null,
    conversation_id text not null,
    state           text not null default 'accepted',
    reason          text not null default '',
    revision        int not null default 1,        -- the planner's: its first news is 2, and each is one more
    accepted_at     timestamptz not null default clock_timestamp(),
    primary key (tenant, turn_id),
    foreign key (tenant, conversation_id) references conversation
);

create unique index one_turn_at_a_time on turn_view (tenant, conversation_id)
    where state not in ('completed', 'failed', 'cancelled', 'budget_exhausted');

create table stall (
    tenant          text not null,
    stall_id        text not null,
    conversation_id text not null,
    turn_id         text not null,
    attempt         int not null default 0,        -- the last that is known to have failed
    reason          text not null default '',
    over            boolean not null,              -- for good, whatever late news says
    retried_at      timestamptz,                   -- since that attempt
    primary key (tenant, stall_id)
);

create index stall_open on stall (tenant, turn_id) where not over;

create table message_view (
    tenant          text not null,
    conversation_id text not null,
    position        int not null,
    turn_id         text not null,
    body            jsonb not null,
    primary key (tenant, conversation_id, position)
);

create table card (
    tenant          text not null,
    interrupt_id    text not null,
    conversation_id text not null,
    turn_id         text not null,
    body            jsonb,                         -- null while only the decision has arrived (B22)
    state           text not null,
    decided_by      text,
    reason          text not null default '',
    shown_at        timestamptz not null default clock_timestamp(),
    primary key (tenant, interrupt_id)
);

create index card_open on card (tenant, shown_at) where state = 'pending';
create index card_of_turn on card (tenant, turn_id);

create table event (
    tenant          text not null,
    conversation_id text not null,
    event_id        bigint not null,               -- counts within the conversation: what Last-Event-ID names
    type            text not null,
    data            jsonb,
    interrupt_id    text,                          -- a card that came out: what is said of it stands there, and not twice
    primary key (tenant, conversation_id, event_id),
    constraint an_event_says_something check ((data is null) <> (interrupt_id is null)),
    foreign key (tenant, interrupt_id) references card
);
