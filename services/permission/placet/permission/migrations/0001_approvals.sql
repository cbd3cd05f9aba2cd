-- One row per question about a frozen command: answered by a rule at once, or by a person later, or by time.

create table approval (
    tenant          text not null,
    interrupt_id    text not null,                 -- random: what a person answers; the natural key alone answers nothing
    operation_id    text not null,
    conversation_id text not null,
    turn_id         text not null,
    tool_call_id    text not null,
    action          text not null,
    requested_by    text not null,
    digest          text not null,
    canonical       bytea not null,
    scope           text not null,                 -- what the policy asks of the approver
    second_person   boolean not null,
    rule            text not null,
    policy_version  text not null,
    state           text not null,
        -- pending -> approved | denied     by a person, once
        -- pending -> expired               by time
        -- approved | denied                by a rule, with the row
    expires_at      timestamptz not null,
    decided_by      text,
    decided_at      timestamptz,
    comment         text not null default '',
    traceparent     text not null,                 -- the span that suspended; a resumed trace links to it
    asked_at        timestamptz not null default clock_timestamp(),
    primary key (interrupt_id),
    constraint a_tool_call_is_asked_about_once unique (tenant, conversation_id, tool_call_id),
    constraint a_state_is_known check (state in ('pending', 'approved', 'denied', 'expired', 'withdrawn')),
    constraint an_end_has_a_time check ((state = 'pending') = (decided_at is null)),
    constraint only_somebody_approves check (state <> 'approved' or decided_by is not null),
    constraint nobody_decides_by_silence check (state <> 'expired' or decided_by is null)
);

create index approval_due on approval (expires_at) where state = 'pending';
create index approval_open on approval (tenant, asked_at) where state = 'pending';
