-- Published policies, the fence of a publish, and the verdicts that are not a plain yes.
CREATE TABLE windlass.policies (
    no           bigint PRIMARY KEY,
    hash         text NOT NULL,
    -- [{"name", "text"}], sorted by name.
    documents    json NOT NULL,
    by           text NOT NULL,
    note         text,
    signature    text,
    rollback_of  bigint,
    at           timestamptz NOT NULL
);

-- What shadow rules would have decided, by minute, and the newest examples of it (engine/shadows.py).
CREATE TABLE windlass.policy_shadows (
    minute    timestamptz NOT NULL,
    policy    bigint NOT NULL,
    rule      text NOT NULL,
    decision  text NOT NULL,
    count     int NOT NULL,
    PRIMARY KEY (minute, policy, rule, decision)
);
CREATE TABLE windlass.policy_examples (
    no        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL,
    policy    bigint NOT NULL,
    rule      text NOT NULL,
    decision  text NOT NULL,
    reason    text NOT NULL,
    edge      text NOT NULL,
    topic     text NOT NULL,
    tenant    text,
    job_id    text,
    caller    text
);

-- The version in force, and the oldest version whose verdicts still hold. `no` is 0 until the first publish: then no job
-- is judged, and the column `jobs.policy` stays NULL.
CREATE TABLE windlass.policy_now (
    id     boolean PRIMARY KEY DEFAULT true CHECK (id),
    no     bigint NOT NULL DEFAULT 0,
    floor  bigint NOT NULL DEFAULT 0,
    -- The newest floor under which every open job was judged again (engine/loops/warden.py).
    swept  bigint NOT NULL DEFAULT 0
);
INSERT INTO windlass.policy_now DEFAULT VALUES;

-- The fence (engine/publish.py). A commit that judges holds the lock shared until it ends, and a publish takes it
-- exclusively. Each statement of a VOLATILE function has a snapshot of its own, so the row is read as it is once the lock
-- is held. In one plain statement, or in a STABLE function, the snapshot would be older than the lock: the commit could
-- go by a version that a publish has replaced.
--
-- Every transaction takes this lock before the rows of jobs, so that it cannot deadlock with a publish.
CREATE FUNCTION windlass.policy_floor() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found bigint;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(6015006);
    SELECT p.floor INTO STRICT found FROM windlass.policy_now p;
    RETURN found;
END $$;

-- Ends the transaction when its verdicts were made by another version than the one in force; the caller judges again.
CREATE FUNCTION windlass.policy_check(judged_by bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    found record;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(6015006);
    SELECT p.no, p.floor INTO STRICT found FROM windlass.policy_now p;
    IF found.no <> judged_by THEN
        RAISE EXCEPTION 'policy % is in force, and not %', found.no, judged_by USING ERRCODE = 'WL002';
    END IF;
    RETURN found.floor;
END $$;

-- The version and the rule of the newest verdict that lets the job go on. NULL: the job was never judged.
ALTER TABLE windlass.jobs ADD COLUMN policy bigint, ADD COLUMN rule text;

-- Denied and quarantined jobs are dead letters too.
DROP INDEX windlass.jobs_failed;
CREATE INDEX jobs_failed ON windlass.jobs (id) WHERE trouble IN ('FAILED', 'TIMEOUT', 'DENIED', 'OUTPUT_QUARANTINED');

-- The next question about a throttled job, and the number of questions; `gate_tries` is NULL unless the policy holds
-- steps of the job.
ALTER TABLE windlass.jobs ADD COLUMN gate_at timestamptz, ADD COLUMN gate_tries smallint;
CREATE INDEX jobs_gate ON windlass.jobs (gate_at) WHERE gate_at IS NOT NULL;

-- What a verdict limits: the attempts of each step.
ALTER TABLE windlass.jobs ADD COLUMN attempts_max smallint;

-- The jobs that hold a place under a limit of concurrent jobs, by rule and tenant (engine/places.py).
CREATE TABLE windlass.places (
    key   text PRIMARY KEY,
    jobs  uuid[] NOT NULL
) WITH (fillfactor = 50);

-- How many requests passed under a velocity limit, by slice of its window (core/velocity.py).
CREATE TABLE windlass.velocity (
    counter   text NOT NULL,
    window_s  int NOT NULL,
    counts    json NOT NULL,
    until     timestamptz NOT NULL,
    PRIMARY KEY (counter, window_s)
) WITH (fillfactor = 50);
CREATE INDEX velocity_until ON windlass.velocity (until);

-- Verdicts that are not a plain ALLOW, each written in the commit of its effect. `no` is the step, NULL for the job.
CREATE TABLE windlass.verdicts (
    job_id       uuid NOT NULL,
    seq          int NOT NULL,
    edge         text NOT NULL,
    no           int,
    attempt      int,
    decision     text NOT NULL,
    rule         text NOT NULL,
    policy       bigint,
    subject      text,
    reason       text NOT NULL,
    constraints  json,
    kernel       text,
    at           timestamptz NOT NULL,
    PRIMARY KEY (job_id, seq)
);
