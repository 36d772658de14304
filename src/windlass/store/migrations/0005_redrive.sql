-- What became of jobs that ended badly, and how jobs ended minute by minute.

-- A job that ended badly and that somebody dealt with: it was run again as another, or discarded (no other). One that
-- is not here is a dead letter. A table of its own, as an index on the jobs' `retry_of` would be one more for every
-- submit to look at.
CREATE TABLE windlass.redriven (
    job_id   uuid PRIMARY KEY,
    new_job  uuid,
    at       timestamptz NOT NULL,
    by       text NOT NULL,
    reason   text
);
INSERT INTO windlass.redriven (job_id, new_job, at, by)
SELECT DISTINCT ON (j.retry_of) j.retry_of, j.id, j.created_at, j.caller
FROM windlass.jobs j JOIN windlass.jobs o ON o.id = j.retry_of AND o.trouble IS NOT NULL
WHERE j.retry_of IS NOT NULL
ORDER BY j.retry_of, j.id DESC;

-- Jobs that ended, by the minute of their end, in the commit that makes their audit records. How long they took is
-- rounded to a power of 1.1 seconds, so that any share of them can be told to within 5 %. Kept for two hours.
CREATE TABLE windlass.minutes (
    minute  timestamptz NOT NULL,
    recipe  text NOT NULL,
    state   text NOT NULL,
    length  smallint NOT NULL,
    count   int NOT NULL,
    PRIMARY KEY (minute, recipe, state, length)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
