-- Proposals and commands. An operation id names both: the proposal that is asked about, and the command it may become.

create table proposal (
    tenant          text not null,
    operation_id    text not null,
    conversation_id text not null,
    turn_id         text not null,
    tool_call_id    text not null,
    verdict         text not null,                 -- written once, with the row
    reason          text not null default '',
    action          text not null,
    digest          text,
    canonical       bytea,
    proposed_at     timestamptz not null default clock_timestamp(),
    primary key (tenant, operation_id),
    constraint a_tool_call_is_proposed_once unique (tenant, tool_call_id),
    constraint a_verdict_is_known check (verdict in ('asked', 'rejected')),
    constraint what_is_asked_about_has_bytes check (verdict = 'rejected' or num_nulls(digest, canonical) = 0)
);

create table command (
    tenant         text not null,
    operation_id   text not null,
    interrupt_id   text not null,
    digest         text not null,
    policy_version text not null,
    rule           text not null,
    decided_by     text not null,
    state          text not null default 'pending',
        -- pending -> dispatching                       claimed
        -- dispatching -> pending                       nothing was sent, or the lease was lost and the key may be replayed
        -- pending -> denied | expired                  the decision no longer stands at claim
        -- pending -> unknown                           likewise, but an earlier claim may have had the effect
        -- dispatching -> succeeded | denied | failed | unknown
        -- unknown -> succeeded | failed                late evidence under an old fence, or reconciled
    fence          int not null default 0,
    claimed_by     text,
    uncertain      text not null default '',       -- why an earlier claim may already have had the effect
    lease_until    timestamptz,
    replay_until   timestamptz,                    -- until then the provider honours the key; null: it never does
    expires_at     timestamptz not null,
    reason         text not null default '',
    receipt        text,
    result         jsonb,
    admitted_at    timestamptz not null default clock_timestamp(),
    settled_at     timestamptz,
    primary key (tenant, operation_id),
    foreign key (tenant, operation_id) references proposal,
    constraint a_state_is_known check (state in ('pending', 'dispatching', 'succeeded', 'denied', 'expired', 'failed', 'unknown')),
    constraint a_claim_has_a_lease check ((state = 'dispatching') = (lease_until is not null)),
    constraint an_end_has_a_time check ((state in ('pending', 'dispatching')) = (settled_at is null))
);

create index command_leased on command (lease_until) where state = 'dispatching';
create index command_waiting on command (expires_at) where state = 'pending';

create table attempt (
    tenant       text not null,
    operation_id text not null,
    fence        int not null,
    worker       text not null,
    requests     int not null,
    outcome      text not null,
    reason       text not null,
    receipt      text,
    late         boolean not null,                 -- reported after the lease had gone to somebody else
    reported_at  timestamptz not null default clock_timestamp(),
    primary key (tenant, operation_id, fence, outcome),
    foreign key (tenant, operation_id) references command
);

comment on table attempt is 'What became of each claim: as its worker reported it, or lost. Evidence: rows are only added.';

-- What was proposed and decided never changes, whoever asks (A5): a changed command would not be the approved one.
create function never_changes() returns trigger language plpgsql as $$
begin
    raise exception 'a % never changes', tg_table_name using errcode = 'restrict_violation';
end $$;

create trigger a_proposal_never_changes before update or delete on proposal
    for each row execute function never_changes();
create trigger an_attempt_never_changes before update or delete on attempt
    for each row execute function never_changes();
create trigger a_command_is_never_forgotten before delete on command
    for each row execute function never_changes();
create trigger what_was_decided_never_changes
    before update of tenant, operation_id, interrupt_id, digest, policy_version, rule, decided_by, expires_at on command
    for each row execute function never_changes();
