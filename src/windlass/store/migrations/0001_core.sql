-- The durable core: recipes and their plans, jobs, their steps, their events, the workers, and the inbox.
--
-- A job's row lock is the only lock: whoever holds it owns all of the job's steps. So no statement locks a step by
-- itself, and locks are always taken in the order of the job ids.
--
-- Every table that belongs to a job leads with the job's id, so that jobs can be spread over several databases.
-- Values that the engine never looks into are `json`, not `jsonb`: kept byte for byte, and cheaper to write.

-- The engine's only clock. A simulation or a test sets windlass.now for its own sessions; nobody else does.
CREATE FUNCTION windlass.clock() RETURNS timestamptz LANGUAGE sql STABLE
    RETURN coalesce(nullif(current_setting('windlass.now', true), '')::timestamptz, now());

-- Ends the transaction when what it was decided on is no longer so; the caller decides again (see draft.sql).
CREATE FUNCTION windlass.require(holds boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT holds THEN
        RAISE EXCEPTION 'a job moved on since it was read' USING ERRCODE = 'WL001';
    END IF;
END $$;

CREATE TABLE windlass.plans (
    hash        text PRIMARY KEY,
    body        json NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT windlass.clock()
);

CREATE TABLE windlass.recipes (
    name        text NOT NULL,
    version     int NOT NULL,
    plan        text NOT NULL REFERENCES windlass.plans (hash),
    created_at  timestamptz NOT NULL DEFAULT windlass.clock(),
    PRIMARY KEY (name, version)
);

CREATE TABLE windlass.jobs (
    id               uuid PRIMARY KEY,
    recipe           text NOT NULL,
    plan             text NOT NULL,
    state            text NOT NULL,
    caller           text NOT NULL,
    priority         smallint NOT NULL,
    is_paused        boolean NOT NULL DEFAULT false,
    event_seq        int NOT NULL,
    -- Counts the decisions made about the job; a write names the version it was decided on. A claim that only starts
    -- a queued step does not count: no decision reads QUEUED steps without holding the row's lock.
    version          int NOT NULL DEFAULT 0,
    steps_total      int NOT NULL,
    steps_open       int NOT NULL,
    steps_failed     int NOT NULL DEFAULT 0,
    input            json NOT NULL,
    error            json,
    labels           jsonb,
    progress         json,
    idempotency_key  text,
    body_hash        text,
    correlation_id   text,
    parent_job       uuid,
    parent_no        int,
    parent_attempt   int,
    depth            smallint NOT NULL DEFAULT 0,
    retry_of         uuid,
    created_at       timestamptz NOT NULL,
    started_at       timestamptz,
    finished_at      timestamptz,
    deadline_at      timestamptz,
    expires_at       timestamptz,
    -- The sooner of the two above while the job is open, NULL once it is finished: the expirer's index is small.
    due_at           timestamptz,
    -- The state of a job that ended in any way but COMPLETED. No index is on `state` itself, so that a claim, which
    -- changes it, need not touch one.
    trouble          text,
    deleted_at       timestamptz
) -- Half of each page is left free for the version that a claim writes, which then touches no index.
WITH (fillfactor = 45, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

CREATE UNIQUE INDEX jobs_idempotency ON windlass.jobs (caller, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX jobs_caller ON windlass.jobs (caller, id);
CREATE INDEX jobs_due ON windlass.jobs (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_trouble ON windlass.jobs (trouble, id) WHERE trouble IS NOT NULL;
CREATE INDEX jobs_parent ON windlass.jobs (parent_job) WHERE parent_job IS NOT NULL;

CREATE TABLE windlass.steps (
    job_id       uuid NOT NULL,
    no           int NOT NULL,
    node         int NOT NULL,
    -- A child of a fan-out has its place in it; the fan-out itself and every other step has NULL.
    index        int,
    state        text NOT NULL,
    queue        text NOT NULL,
    priority     smallint NOT NULL,
    -- Needs not met yet; for a fan-out that is under way, children not settled yet.
    unmet        int NOT NULL,
    -- For a fan-out: how many children it will have, and how many have rows.
    fan          int,
    fanned       int,
    attempt      int NOT NULL DEFAULT 0,
    failures     int NOT NULL DEFAULT 0,
    losses       int NOT NULL DEFAULT 0,
    worker       uuid,
    -- RUNNING: when the attempt has run too long. PARKED: when the wait is over, or has lasted too long.
    wake_at      timestamptz,
    timeout_s    real NOT NULL,
    waiting_for  text,
    item         json,
    output       json,
    error        json,
    checkpoint   json,
    progress     json,
    started_at   timestamptz,
    finished_at  timestamptz,
    PRIMARY KEY (job_id, no)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- A job's id is ordered by time, so within a priority the oldest job goes first.
CREATE INDEX steps_queued ON windlass.steps (queue, priority DESC, job_id, no) WHERE state = 'QUEUED';
CREATE INDEX steps_running ON windlass.steps (worker) WHERE state = 'RUNNING';
CREATE INDEX steps_ready ON windlass.steps (job_id, no) WHERE state = 'READY';
CREATE INDEX steps_parked ON windlass.steps (wake_at) WHERE state = 'PARKED' AND wake_at IS NOT NULL;

CREATE TABLE windlass.events (
    job_id           uuid NOT NULL,
    seq              int NOT NULL,
    at               timestamptz NOT NULL,
    type             text NOT NULL,
    source           text NOT NULL,
    no               int,
    attempt          int,
    payload          json,
    correlation_id   text,
    idempotency_key  text,
    PRIMARY KEY (job_id, seq)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.5);

-- A worker process and its lease. Its attempts live as long as it does; one row renews them all.
CREATE TABLE windlass.workers (
    id           uuid PRIMARY KEY,
    host         text NOT NULL,
    pid          int NOT NULL,
    queues       text[] NOT NULL,
    concurrency  int NOT NULL,
    started_at   timestamptz NOT NULL,
    seen_at      timestamptz NOT NULL,
    lease_until  timestamptz NOT NULL,
    -- Once set, the worker's lease is over for good: it must come back under a new id.
    lost_at      timestamptz
);

-- Reports that wait for their job's turn: written in the commit of what caused them, applied by the relay.
CREATE TABLE windlass.inbox (
    job_id   uuid NOT NULL,
    no       int NOT NULL,
    attempt  int NOT NULL,
    source   text NOT NULL,
    outcome  json NOT NULL,
    at       timestamptz NOT NULL,
    PRIMARY KEY (job_id, no, attempt, source)
);
