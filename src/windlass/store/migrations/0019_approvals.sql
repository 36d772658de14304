-- Approvals: requests to people, and their votes. A row of an approval is written under the lock of its job's row.
CREATE TABLE windlass.approvals (
    id              uuid PRIMARY KEY,
    job_id          uuid NOT NULL,
    -- The step that asks and its attempt; NULL if the whole job must be approved.
    no              int,
    attempt         int,
    edge            text NOT NULL,
    -- The digest of what is approved (core/approval.py), and the parts of it that no other row holds.
    subject         text NOT NULL,
    arguments       json,
    constraints     json,
    -- The policy and the rule that asked; a recipe's own question has neither.
    policy          bigint,
    rule            text,
    rule_hash       text NOT NULL DEFAULT '',
    reason          text NOT NULL DEFAULT '',
    question        text NOT NULL DEFAULT '',
    on_reject       text NOT NULL DEFAULT 'fail',
    requester       text NOT NULL,
    need            int NOT NULL,
    who             json NOT NULL,
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz NOT NULL,
    escalate_at     timestamptz,
    escalated_at    timestamptz,
    decided_at      timestamptz,
    state           text NOT NULL CHECK (state IN ('PENDING', 'APPROVED', 'REJECTED', 'EXPIRED', 'INVALIDATED', 'USED')),
    -- The next moment at which the engine must act on it; NULL if there is none.
    due_at          timestamptz,
    -- The notice to the installation's webhook: what it is about, and its next delivery.
    notice          text,
    notice_due_at   timestamptz,
    notice_attempt  int NOT NULL DEFAULT 0,
    notice_failures int NOT NULL DEFAULT 0,
    notice_error    text
);

-- One open request for each step, and for each job.
CREATE UNIQUE INDEX approvals_open ON windlass.approvals (job_id, coalesce(no, -1))
    WHERE state IN ('PENDING', 'APPROVED');
CREATE INDEX approvals_job ON windlass.approvals (job_id);
CREATE INDEX approvals_pending ON windlass.approvals (id) WHERE state = 'PENDING';
CREATE INDEX approvals_due ON windlass.approvals (due_at) WHERE state = 'PENDING' AND due_at IS NOT NULL;
CREATE INDEX approvals_notice ON windlass.approvals (notice_due_at) WHERE notice_due_at IS NOT NULL;

CREATE TABLE windlass.votes (
    approval_id     uuid NOT NULL,
    caller          text NOT NULL,
    choice          text NOT NULL CHECK (choice IN ('approve', 'reject')),
    reason          text NOT NULL,
    note            text NOT NULL,
    -- The public id of the key that was used, for the record: a vote belongs to its caller.
    key_id          text,
    at              timestamptz NOT NULL,
    -- One vote for each person.
    PRIMARY KEY (approval_id, caller)
);

-- The roles of a key's holder, for rules that say who may decide.
ALTER TABLE windlass.keys ADD COLUMN roles text[] NOT NULL DEFAULT '{}';

-- The callers of a job and of all jobs above it, under every name that they have had: none of them may decide.
CREATE FUNCTION windlass.callers_above(of uuid) RETURNS text[] LANGUAGE sql STABLE AS $$
    WITH RECURSIVE line AS (
        SELECT j.id, j.parent_job, j.caller FROM windlass.jobs j WHERE j.id = of
        UNION ALL
        SELECT p.id, p.parent_job, p.caller FROM line l JOIN windlass.jobs p ON p.id = l.parent_job
    )
    SELECT array_agg(caller ORDER BY caller) FROM (
        SELECT l.caller FROM line l
        UNION
        SELECT c.adopted_by FROM windlass.caller_aliases c JOIN line l ON l.caller = c.caller
        WHERE c.adopted_by IS NOT NULL
    ) AS known
$$;

-- An older release cannot read a plan that asks people.
UPDATE windlass.installation SET oldest_schema = 19, oldest_release = '0.2.0';
