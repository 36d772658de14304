-- Claiming steps, and finding those that time or the router must look at.

-- name: step_claim
-- One statement, one commit. It looks a little further than it takes, in order of priority and then of the jobs' age,
-- skips the jobs that someone else is writing to right now, and locks the rest; a step that was claimed meanwhile
-- fails the test on its state. `$4` is how far it looks.
WITH seen AS MATERIALIZED (
    SELECT c.job_id, c.no, c.priority
    FROM unnest($2::text[]) AS q (queue)
    CROSS JOIN LATERAL (
        SELECT s.job_id, s.no, s.priority FROM windlass.steps s
        WHERE s.state = 'QUEUED' AND s.queue = q.queue
        ORDER BY s.priority DESC, s.job_id, s.no
        LIMIT $4
    ) AS c
    ORDER BY c.priority DESC, c.job_id, c.no
    LIMIT $4
), picked AS MATERIALIZED (
    SELECT seen.job_id, seen.no, j.state AS job_state, j.event_seq, j.version, j.plan, j.deadline_at,
           j.steps_total, j.steps_open, j.steps_failed, j.parent_job IS NOT NULL AS has_parent, j.correlation_id
    FROM seen JOIN windlass.jobs j ON j.id = seen.job_id
    WHERE j.state IN ('QUEUED', 'DISPATCHING', 'PROCESSING', 'PREVIEW') AND NOT j.is_paused
    ORDER BY seen.priority DESC, seen.job_id, seen.no
    LIMIT $3
    FOR UPDATE OF j SKIP LOCKED
), taken AS (
    UPDATE windlass.steps s
    SET state = 'RUNNING',
        attempt = s.attempt + 1,
        worker = $1,
        started_at = (SELECT windlass.clock()),
        wake_at = (SELECT windlass.clock()) + make_interval(secs => s.timeout_s)
    FROM picked
    -- Written so that the planner does not take it for the condition of the index steps_queued, and read all of that.
    WHERE s.job_id = picked.job_id AND s.no = picked.no AND s.state || '' = 'QUEUED'
    RETURNING s.node, s.index, s.attempt, s.failures, s.losses, s.item, s.checkpoint, s.timeout_s, picked.*
), numbered AS (
    SELECT *, row_number() OVER (PARTITION BY job_id ORDER BY no) AS i, count(*) OVER (PARTITION BY job_id) AS n,
           job_state IN ('QUEUED', 'DISPATCHING') AS is_first
    FROM taken
), job AS (
    UPDATE windlass.jobs j
    SET event_seq = j.event_seq + t.n + t.is_first::int,
        version = j.version + t.is_first::int,
        state = CASE WHEN t.is_first THEN 'PROCESSING' ELSE j.state END,
        started_at = coalesce(j.started_at, (SELECT windlass.clock()))
    FROM numbered t
    WHERE t.i = 1 AND j.id = t.job_id
), event AS (
    INSERT INTO windlass.events (job_id, seq, at, type, source, no, attempt, payload, correlation_id)
    SELECT job_id, event_seq + is_first::int + i, (SELECT windlass.clock()), 'step.running', 'worker', no, attempt,
           $5::json, correlation_id
    FROM numbered
    UNION ALL
    SELECT job_id, event_seq + 1, (SELECT windlass.clock()), 'job.processing', 'worker', NULL, NULL, NULL, correlation_id
    FROM numbered WHERE is_first AND i = 1
)
SELECT job_id, no, attempt, plan, node, index, item, checkpoint, failures, timeout_s,
       extract(epoch FROM deadline_at - (SELECT windlass.clock()))::float8 AS deadline_s,
       version + is_first::int AS version, job_state = 'PREVIEW' AS is_preview,
       -- A claim takes nothing from a paused job; what a worker is told again later (step_held) may be of one.
       false AS is_paused, steps_total, steps_open, steps_failed, has_parent, correlation_id, losses,
       -- Once per job, and only if it is small. It must not pass through the parts above, which would unpack it for
       -- every step.
       CASE WHEN i = 1 THEN (
           SELECT j.input FROM windlass.jobs j WHERE j.id = job_id AND pg_column_size(j.input) < 2000
       ) END AS input,
       (SELECT count(*) FROM seen) AS seen,
       -- A claim need not wait for the disk (engine/claim.py).
       (SELECT set_config('synchronous_commit', 'off', true)) AS commits
FROM numbered

-- name: step_claim_one
-- The same for the first step of one queue: what numbers and counts steps per job costs as much as taking a lone one.
WITH seen AS MATERIALIZED (
    SELECT job_id, no, priority FROM windlass.steps
    WHERE state = 'QUEUED' AND queue = $2::text
    ORDER BY priority DESC, job_id, no
    LIMIT $3
), picked AS MATERIALIZED (
    SELECT seen.job_id, seen.no, j.state AS job_state, j.event_seq, j.version, j.plan, j.deadline_at,
           j.steps_total, j.steps_open, j.steps_failed, j.parent_job IS NOT NULL AS has_parent, j.correlation_id,
           CASE WHEN pg_column_size(j.input) < 2000 THEN j.input END AS input,
           j.state IN ('QUEUED', 'DISPATCHING') AS is_first, windlass.clock() AS now
    FROM seen JOIN windlass.jobs j ON j.id = seen.job_id
    WHERE j.state IN ('QUEUED', 'DISPATCHING', 'PROCESSING', 'PREVIEW') AND NOT j.is_paused
    ORDER BY seen.priority DESC, seen.job_id, seen.no
    LIMIT 1
    FOR UPDATE OF j SKIP LOCKED
), taken AS (
    UPDATE windlass.steps s
    SET state = 'RUNNING',
        attempt = s.attempt + 1,
        worker = $1,
        started_at = picked.now,
        wake_at = picked.now + make_interval(secs => s.timeout_s)
    FROM picked
    WHERE s.job_id = picked.job_id AND s.no = picked.no AND s.state || '' = 'QUEUED'
    RETURNING s.node, s.index, s.attempt, s.failures, s.losses, s.item, s.checkpoint, s.timeout_s, picked.*
), job AS (
    UPDATE windlass.jobs j
    SET event_seq = j.event_seq + 1 + t.is_first::int,
        version = j.version + t.is_first::int,
        state = CASE WHEN t.is_first THEN 'PROCESSING' ELSE j.state END,
        started_at = coalesce(j.started_at, t.now)
    FROM taken t
    WHERE j.id = t.job_id
), event AS (
    INSERT INTO windlass.events (job_id, seq, at, type, source, no, attempt, payload, correlation_id)
    SELECT job_id, event_seq + is_first::int + 1, now, 'step.running', 'worker', no, attempt, $4::json, correlation_id
    FROM taken
    UNION ALL
    SELECT job_id, event_seq + 1, now, 'job.processing', 'worker', NULL, NULL, NULL, correlation_id
    FROM taken WHERE is_first
)
SELECT job_id, no, attempt, plan, node, index, item, checkpoint, failures, timeout_s,
       extract(epoch FROM deadline_at - now)::float8 AS deadline_s,
       version + is_first::int AS version, job_state = 'PREVIEW' AS is_preview, false AS is_paused,
       steps_total, steps_open, steps_failed, has_parent, correlation_id, losses, input,
       (SELECT count(*) FROM seen) AS seen, set_config('synchronous_commit', 'off', true) AS commits
FROM taken

-- name: job_inputs
SELECT id, input FROM windlass.jobs WHERE id = ANY($1::uuid[])

-- name: step_first_queued
-- The job whose lock a claim should wait for when every candidate was skipped.
SELECT c.job_id
FROM unnest($1::text[]) AS q (queue)
CROSS JOIN LATERAL (
    SELECT s.job_id, s.priority FROM windlass.steps s
    WHERE s.state = 'QUEUED' AND s.queue = q.queue
    ORDER BY s.priority DESC, s.job_id, s.no
    LIMIT 1
) AS c
ORDER BY c.priority DESC, c.job_id
LIMIT 1

-- name: step_held
-- What a worker holds, as the database knows it; in the order of a claim's columns.
SELECT s.job_id, s.no, s.attempt, j.plan, s.node, s.index, s.item, s.checkpoint, s.failures, s.timeout_s,
       extract(epoch FROM j.deadline_at - windlass.clock())::float8 AS deadline_s,
       j.version, j.state = 'PREVIEW' AS is_preview, j.is_paused, j.steps_total, j.steps_open, j.steps_failed,
       j.parent_job IS NOT NULL AS has_parent, j.correlation_id, s.losses, j.input
FROM windlass.steps s JOIN windlass.jobs j ON j.id = s.job_id
WHERE s.worker = $1 AND s.state = 'RUNNING'

-- name: step_held_keys
SELECT job_id, no, attempt FROM windlass.steps WHERE worker = $1 AND state = 'RUNNING'

-- name: step_place
SELECT s.job_id, s.no, s.node, j.plan
FROM unnest($1::uuid[], $2::int[]) AS t (job_id, no)
JOIN windlass.steps s ON s.job_id = t.job_id AND s.no = t.no
JOIN windlass.jobs j ON j.id = t.job_id

-- name: step_ready
-- Steps for the router, of jobs that nobody has paused.
SELECT s.job_id, s.no, s.node, s.index, s.item, s.fan, s.fanned, j.plan, j.input, j.depth, j.caller
FROM windlass.steps s JOIN windlass.jobs j ON j.id = s.job_id
WHERE s.state = 'READY' AND NOT j.is_paused
ORDER BY s.job_id, s.no
LIMIT $1

-- name: step_due
SELECT s.job_id, s.no, s.node, j.plan
FROM windlass.steps s JOIN windlass.jobs j ON j.id = s.job_id
WHERE s.state = 'PARKED' AND s.wake_at <= windlass.clock()
ORDER BY s.wake_at, s.job_id, s.no
LIMIT $1

-- name: step_lost
-- Attempts whose worker is gone, and attempts that ran past their time (and a grace, as the worker says so itself).
SELECT s.job_id, s.no, s.node, s.attempt, j.plan, (w.id IS NULL OR w.lost_at IS NOT NULL) AS is_lost
FROM windlass.steps s
JOIN windlass.jobs j ON j.id = s.job_id
LEFT JOIN windlass.workers w ON w.id = s.worker
WHERE s.state = 'RUNNING'
  AND (w.id IS NULL OR w.lost_at IS NOT NULL OR s.wake_at + make_interval(secs => $2) < windlass.clock())
ORDER BY s.job_id, s.no
LIMIT $1

-- name: step_fan_outputs
SELECT index, output FROM windlass.steps WHERE job_id = $1 AND node = $2 AND index IS NOT NULL ORDER BY index

-- name: step_outputs_many
SELECT s.job_id, s.no, s.state, s.fan, s.output
FROM unnest($1::uuid[], $2::int[]) AS t (job_id, no)
JOIN windlass.steps s ON s.job_id = t.job_id AND s.no = t.no
