-- The service: who asks, how much, what they did, who is told; and the order in which events of all jobs came about.

-- The transaction that wrote an event. Ordered by it, and read only below the oldest one still under way, the events of
-- all jobs can be followed without a gap. Rows from before this migration have none.
ALTER TABLE windlass.events ADD COLUMN txid xid8;
ALTER TABLE windlass.events ALTER COLUMN txid SET DEFAULT pg_current_xact_id();
-- Only jobs with a correlation id are followed: the others cost no entry.
CREATE INDEX events_feed ON windlass.events (txid, job_id, seq)
    WHERE txid IS NOT NULL AND correlation_id IS NOT NULL AND (no IS NULL OR type = 'step.progress');

-- Listing a caller's jobs. Each index has entries only for jobs that ended badly, or that carry the label.
CREATE INDEX jobs_caller_trouble ON windlass.jobs (caller, id) WHERE trouble IS NOT NULL;
CREATE INDEX jobs_failed_step ON windlass.jobs (caller, (error ->> 'step'), id) WHERE trouble = 'FAILED';
CREATE INDEX jobs_corpus ON windlass.jobs (caller, (labels ->> 'corpus'), id) WHERE labels ? 'corpus';

CREATE TABLE windlass.installation (
    one           boolean PRIMARY KEY DEFAULT true CHECK (one),
    is_served     boolean NOT NULL DEFAULT false,
    epoch         int NOT NULL DEFAULT 1,
    -- Of the cluster that the txids belong to; another one after a restore.
    system_id     bigint,
    -- Tells two different secrets apart without telling either.
    secret_check  bytea
);
INSERT INTO windlass.installation DEFAULT VALUES;

CREATE TABLE windlass.keys (
    id            text PRIMARY KEY,              -- the public part, 12 letters
    digest        bytea NOT NULL,                -- HMAC-SHA256 of the whole key
    caller        text NOT NULL,
    caller_type   text NOT NULL,
    tier          text,
    scopes        text[] NOT NULL,
    name          text NOT NULL,
    created_at    timestamptz NOT NULL,
    created_by    text NOT NULL,
    expires_at    timestamptz,
    revoked_at    timestamptz,
    last_used_at  timestamptz
);
CREATE INDEX keys_caller ON windlass.keys (caller);

-- A caller whose Membership names no id: known by the whole digest of its key, called by an id of ours.
CREATE TABLE windlass.caller_aliases (
    digest      bytea PRIMARY KEY,
    caller      text NOT NULL,
    adopted_by  text,
    created_at  timestamptz NOT NULL
);

-- Requests per caller in 61 slices, each a sixtieth of the window long, the newest first. Windows of another length are
-- counted apart: their slices have other numbers. Lost in a crash, in the callers' favour.
CREATE UNLOGGED TABLE windlass.limits (
    caller   text NOT NULL,
    slice_s  double precision NOT NULL,
    slice    bigint NOT NULL,                    -- the newest one's number: its time divided by its length
    taken    int[] NOT NULL,
    PRIMARY KEY (caller, slice_s)
) WITH (fillfactor = 50);
-- When the last of it leaves the window. It changes once a slice, so most updates touch no index.
CREATE INDEX limits_until ON windlass.limits (((slice + 61) * slice_s));

-- Counts the requests that fit, in order, and says which; the row is locked, so it is exact across processes. A slice
-- counts whole until all of it has left the window: so no window has more than `most`, wherever it begins.
-- `core/limit.py take` is the same in Python.
CREATE FUNCTION windlass.limit_take(who text, costs int[], most int, length_s float8)
RETURNS TABLE (granted boolean[], taken int[], into_slice float8) LANGUAGE plpgsql AS $$
DECLARE
    at float8 := extract(epoch FROM windlass.clock())::float8 / length_s;
    here bigint := floor(at);
    was bigint; counts int[]; used bigint; cost int; gap int;
BEGIN
    LOOP
        SELECT l.slice, l.taken INTO was, counts FROM windlass.limits l
        WHERE l.caller = who AND l.slice_s = length_s FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO windlass.limits AS l (caller, slice_s, slice, taken)
        VALUES (who, length_s, here, array_fill(0, ARRAY[61])) ON CONFLICT DO NOTHING;
    END LOOP;
    -- A clock that was set back by more than a window must not shut the caller out until it has caught up.
    IF was > here + 61 THEN
        was := here - 61;
    END IF;
    here := greatest(here, was);
    gap := least(here - was, 61);
    counts := array_fill(0, ARRAY[gap]) || counts[1:61 - gap];
    used := (SELECT sum(n) FROM unnest(counts) AS n);
    granted := '{}';
    FOREACH cost IN ARRAY costs LOOP
        granted := granted || (used + cost <= most);
        IF used + cost <= most THEN
            used := used + cost;
            counts[1] := counts[1] + cost;
        END IF;
    END LOOP;
    UPDATE windlass.limits l SET slice = here, taken = counts WHERE l.caller = who AND l.slice_s = length_s;
    taken := counts;
    into_slice := greatest(0.0, at - here);
    RETURN NEXT;
END $$;

-- One-use rights to open a stream; only their digests.
CREATE UNLOGGED TABLE windlass.tickets (
    digest      bytea PRIMARY KEY,
    context     json NOT NULL,
    job_id      uuid,
    expires_at  timestamptz NOT NULL
);

CREATE TABLE windlass.audit_notes (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL,
    event    text NOT NULL,
    caller   text,
    payload  json NOT NULL
);
CREATE TABLE windlass.audit (
    no          bigint PRIMARY KEY,              -- from 1, no gap
    at          timestamptz NOT NULL,
    event       text NOT NULL,
    caller      text,
    caller_type text,
    tier        text,
    job_id      uuid,
    request_id  text,
    payload     json NOT NULL,
    hash        bytea NOT NULL                   -- SHA-256 of the record before it and of this one
);
CREATE INDEX audit_caller ON windlass.audit (caller, no);
CREATE INDEX audit_event ON windlass.audit (event, no);
CREATE INDEX audit_job ON windlass.audit (job_id) WHERE job_id IS NOT NULL;

-- How far each follower of the feed has come.
CREATE TABLE windlass.cursors (
    name    text PRIMARY KEY,
    txid    xid8 NOT NULL,
    job_id  uuid NOT NULL,
    seq     int NOT NULL
);
CREATE TABLE windlass.tallies (
    recipe     text NOT NULL,
    state      text NOT NULL,                    -- QUEUED for submitted, else the ending
    count      bigint NOT NULL,
    seconds    double precision NOT NULL DEFAULT 0,
    PRIMARY KEY (recipe, state)
);

CREATE TABLE windlass.webhooks (
    job_id       uuid PRIMARY KEY,
    caller       text NOT NULL,
    url          text NOT NULL,
    -- Deliveries to one host are counted by it.
    host         text NOT NULL GENERATED ALWAYS AS (lower(substring(url FROM '://([^/?#]*)'))) STORED,
    secret       bytea NOT NULL,                 -- sealed
    state        text NOT NULL,                  -- WAITING, DUE, DELIVERED, DEAD
    attempt      int NOT NULL DEFAULT 0,         -- the number of the last try; a report names its own
    failures     int NOT NULL DEFAULT 0,         -- where in the schedule; a try that was lost with its courier is none
    due_at       timestamptz,                    -- WAITING: NULL. DUE: when to try, or until when a try may take
    answer       int,                            -- the last HTTP status
    error        text,                           -- the last fault's code
    ended_at     timestamptz,                    -- DELIVERED or DEAD
    created_at   timestamptz NOT NULL
);
CREATE INDEX webhooks_due ON windlass.webhooks (due_at) WHERE state = 'DUE';
CREATE INDEX webhooks_dead ON windlass.webhooks (caller, job_id) WHERE state = 'DEAD';

-- Engines that run loops, for /readyz and people.
CREATE TABLE windlass.engines (
    id          uuid PRIMARY KEY,
    host        text NOT NULL,
    pid         int NOT NULL,
    started_at  timestamptz NOT NULL,
    seen_at     timestamptz NOT NULL
);
