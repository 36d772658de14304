-- External work: what providers were asked and what they said, who may ask now, what it costs, and what jobs are told.

-- Work that a provider does for a step. Written before the provider is asked, so that whoever comes next asks for the
-- same again; its key is made of its own: job, step and round. A round ends with the provider's answer; another try at
-- the step begins the next.
CREATE TABLE windlass.provider_jobs (
    job_id        uuid NOT NULL,
    no            int NOT NULL,
    round         int NOT NULL,
    attempt       int NOT NULL,                  -- the one that waits for it
    provider      text NOT NULL,
    external_id   text,                          -- once the provider has told it
    state         text NOT NULL,                 -- SUBMITTING, RUNNING, CANCELLING, ENDED
    status        text,                          -- what the provider said last
    polls         int NOT NULL DEFAULT 0,
    poll_s        double precision NOT NULL DEFAULT 30,   -- how long after its submit it is asked for first
    -- RUNNING: when to ask. CANCELLING: when to try. A poller that takes a row puts this off while it asks.
    due_at        timestamptz,
    created_at    timestamptz NOT NULL,
    submitted_at  timestamptz,
    ended_at      timestamptz,
    PRIMARY KEY (job_id, no, round)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
-- Not unique: a provider may answer two requests with one piece of work, and then both wait for it.
CREATE INDEX provider_jobs_external ON windlass.provider_jobs (provider, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX provider_jobs_due ON windlass.provider_jobs (provider, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX provider_jobs_open ON windlass.provider_jobs (provider, created_at) WHERE state <> 'ENDED';

-- What providers told by webhook. The id refuses a replay, in the commit of the effect.
CREATE TABLE windlass.provider_events (
    provider     text NOT NULL,
    id           text NOT NULL,
    at           timestamptz NOT NULL,
    external_id  text,
    -- WAITING: of work that is not known yet, or of a step that cannot take it yet. DUE: now it can. APPLIED: it settled
    -- the step. NOTED: it told progress. LATE: it changed nothing any more.
    state        text NOT NULL,
    said         json,                           -- what the body says, while it waits
    headers      json NOT NULL,
    body         bytea NOT NULL,
    job_id       uuid,
    no           int,
    round        int,
    PRIMARY KEY (provider, id)
);
CREATE INDEX provider_events_waiting ON windlass.provider_events (provider, external_id) WHERE state = 'WAITING';
CREATE INDEX provider_events_due ON windlass.provider_events (at) WHERE state = 'DUE';
CREATE INDEX provider_events_at ON windlass.provider_events (at);
CREATE INDEX provider_events_job ON windlass.provider_events (job_id) WHERE job_id IS NOT NULL;

-- Providers as all processes see them: how much may be asked of them, and whether they answer.
CREATE TABLE windlass.providers (
    name          text PRIMARY KEY,
    concurrency   int NOT NULL DEFAULT 1,
    rate          double precision NOT NULL DEFAULT 10,   -- requests per second
    estimate      numeric,                       -- what a step costs at most that does not say so itself
    free_at       timestamptz,                   -- when the next request may be made, if all that were promised are
    paused_until  timestamptz,                   -- it said that it is busy
    failures      int NOT NULL DEFAULT 0,        -- in a row
    opened_at     timestamptz,                   -- since when the breaker lets nothing through
    probes        int NOT NULL DEFAULT 0,
    error         text,                          -- the last failure, for people
    grant_at      timestamptz,                   -- when the granter looks at the line again, if it need not be told
    updated_at    timestamptz NOT NULL
) WITH (fillfactor = 50);

-- The lines: one row for each step that needs a provider's place, a key's place or money. It is written in the commit
-- of the step's own move, and gone with the step's end. Without a provider, or without a key, that is ''.
CREATE TABLE windlass.slots (
    job_id    uuid NOT NULL,
    no        int NOT NULL,
    provider  text NOT NULL,
    key       text NOT NULL,
    most      int NOT NULL,                      -- how many may hold the key
    state     text NOT NULL,                     -- WAITING, HELD, IDLE
    -- Of one that waits: NULL at the front of its line, 'key' behind others of its key, else the budget that is short of
    -- money, as 'scope:name'. So the granter reads nobody who cannot go.
    behind    text,
    priority  smallint NOT NULL,
    turn      bigint NOT NULL DEFAULT 0,         -- keys take turns in a provider's line
    cost      numeric,                           -- what an attempt may cost; reserved while HELD
    caller    text NOT NULL,
    recipe    text NOT NULL,
    jobs      text[] NOT NULL,                   -- whose budgets it is charged to: its job and those that it is a part of
    since     timestamptz NOT NULL,
    PRIMARY KEY (job_id, no)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
-- A job's id is ordered by time, so within a priority and a turn the oldest goes first.
CREATE INDEX slots_line ON windlass.slots (provider, priority DESC, turn, job_id, no)
    WHERE state = 'WAITING' AND behind IS NULL;
CREATE INDEX slots_flow ON windlass.slots (provider, priority, key, turn) WHERE state = 'WAITING';
CREATE INDEX slots_key_line ON windlass.slots (key, provider, priority DESC, job_id, no)
    WHERE state = 'WAITING' AND key <> '' AND coalesce(behind, 'key') = 'key';
CREATE INDEX slots_short ON windlass.slots (behind, priority DESC, job_id, no)
    WHERE state = 'WAITING' AND behind <> 'key';
CREATE INDEX slots_provider ON windlass.slots (provider) WHERE state = 'HELD';
CREATE INDEX slots_key ON windlass.slots (key) WHERE state = 'HELD' AND key <> '';

-- What the granter is to look at: a provider's line, a key's, those who are short of a budget. Only added to and taken
-- away, so that those who write it do not wait for each other.
CREATE TABLE windlass.slot_changes (
    kind  text NOT NULL,                         -- provider, key, job, recipe, caller
    name  text NOT NULL,
    seq   bigint GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (kind, name, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- A job, the job whose step started it, and so on.
CREATE FUNCTION windlass.lineage(job uuid) RETURNS text[] LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH RECURSIVE up (id, parent_job, depth) AS (
        SELECT j.id, j.parent_job, 1 FROM windlass.jobs j WHERE j.id = job
        UNION ALL
        SELECT p.id, p.parent_job, up.depth + 1 FROM up, LATERAL (
            SELECT j.id, j.parent_job FROM windlass.jobs j WHERE j.id = up.parent_job LIMIT 1
        ) AS p
        WHERE up.depth < 100
    )
    SELECT array_agg(id::text ORDER BY id) FROM up;
END;

-- What attempts cost.
CREATE TABLE windlass.costs (
    job_id      uuid NOT NULL,
    no          int NOT NULL,
    attempt     int NOT NULL,
    provider    text,
    amount      numeric NOT NULL,
    tokens_in   bigint NOT NULL DEFAULT 0,
    tokens_out  bigint NOT NULL DEFAULT 0,
    seconds     double precision NOT NULL DEFAULT 0,
    at          timestamptz NOT NULL,
    PRIMARY KEY (job_id, no, attempt)
);

-- How much may be spent, by a job, on a recipe or for a caller. What is spent and what is reserved are changed in the
-- commits that write the costs and the slots.
CREATE TABLE windlass.budgets (
    scope       text NOT NULL,                   -- job, recipe, caller
    name        text NOT NULL,
    most        numeric NOT NULL,
    spent       numeric NOT NULL DEFAULT 0,
    reserved    numeric NOT NULL DEFAULT 0,
    updated_at  timestamptz NOT NULL,
    PRIMARY KEY (scope, name)
);

-- Named events that were sent to jobs; one that nobody waited for is kept for whoever comes.
CREATE TABLE windlass.signals (
    job_id    uuid NOT NULL,
    id        text NOT NULL,                     -- the sender's; the same one again changes nothing
    name      text NOT NULL,
    body      json NOT NULL,
    sender    text NOT NULL,
    at        timestamptz NOT NULL,
    seq       bigint GENERATED ALWAYS AS IDENTITY,
    taken_no  int,                               -- the step that it completed
    PRIMARY KEY (job_id, id)
);

-- What a parked step waits to be told.
CREATE TABLE windlass.waits (
    job_id  uuid NOT NULL,
    no      int NOT NULL,
    name    text NOT NULL,
    match   json NOT NULL,
    PRIMARY KEY (job_id, no)
);
