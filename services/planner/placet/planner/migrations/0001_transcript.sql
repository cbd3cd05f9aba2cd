-- Turns, the transcript, and the tool calls of its messages.

create table turn (
    tenant          text not null,
    turn_id         text not null,
    conversation_id text not null,
    principal       text not null,
    mandate         text not null,                    -- ingress vouches for the principal; we only carry it
    state           text not null default 'planning',
        -- planning -> executing                       the model asked for calls
        -- executing <-> awaiting_approval             a card is out
        -- executing | awaiting_approval -> planning   every call has its result
        -- planning -> completed | failed
    reason          text not null default '',
    revision        int not null default 1,           -- every change names the revision that it saw
    begun_at        timestamptz not null default clock_timestamp(),
    primary key (tenant, turn_id),
    constraint a_state_is_known check (state in ('planning', 'executing', 'awaiting_approval', 'completed', 'failed',
                                                 'cancelled', 'budget_exhausted'))
);

create table message (
    tenant          text not null,
    conversation_id text not null,
    position        int not null,
    turn_id         text not null,
    role            text not null,
    text            text not null,
    tool_call_id    text,
    outcome         text,
    said_at         timestamptz not null default clock_timestamp(),
    primary key (tenant, conversation_id, position),
    foreign key (tenant, turn_id) references turn,
    constraint a_role_is_known check (role in ('user', 'assistant', 'tool')),
    constraint only_results_name_a_call check ((role = 'tool') = (tool_call_id is not null)),
    constraint a_result_has_an_outcome check ((role = 'tool') = (outcome is not null))
);

create unique index a_call_has_one_result on message (tenant, tool_call_id) where tool_call_id is not null;

create table tool_call (
    tenant       text not null,
    tool_call_id text not null,                        -- ours; the model's own id is a hint and may repeat
    turn_id      text not null,
    position     int not null,                         -- of the assistant message
    ordinal      int not null,                         -- within the message: the model's order
    hint         text not null,
    action       text not null,
    arguments    text not null,                        -- the model's own text
    effect       text not null,
    state        text not null,
        -- waiting -> proposed | skipped
        -- proposed -> awaiting_approval
        -- proposed | awaiting_approval -> succeeded | rejected | denied | expired | failed | unknown
    primary key (tenant, tool_call_id),
    foreign key (tenant, turn_id) references turn,
    constraint a_state_is_known check (state in ('waiting', 'proposed', 'awaiting_approval', 'succeeded', 'rejected', 'denied',
                                                 'expired', 'failed', 'unknown', 'skipped', 'cancelled'))
);

create index tool_call_of_turn on tool_call (tenant, turn_id);
