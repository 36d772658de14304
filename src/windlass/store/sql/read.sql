-- What people and programs look at. Nothing here decides anything.

-- name: read_job
SELECT j.*, r.version AS recipe_version FROM windlass.jobs j
LEFT JOIN LATERAL (
    SELECT version FROM windlass.recipes r WHERE r.name = j.recipe AND r.plan = j.plan ORDER BY version DESC LIMIT 1
) r ON true
WHERE j.id = $1

-- name: read_jobs
SELECT j.*, NULL::int AS recipe_version FROM windlass.jobs j
WHERE ($1::text IS NULL OR j.caller = $1)
  AND ($2::text[] IS NULL OR j.state = ANY($2))
  AND ($3::text IS NULL OR j.recipe = $3)
  AND ($4::jsonb IS NULL OR j.labels @> $4)
  AND ($5::uuid IS NULL OR j.id < $5)
  AND ($6 OR j.deleted_at IS NULL)
ORDER BY j.id DESC
LIMIT $7

-- name: read_jobs_trouble
-- The same for states that are an ending other than COMPLETED: few among many, so they have an index.
SELECT j.*, NULL::int AS recipe_version FROM windlass.jobs j
WHERE j.trouble = ANY($2::text[])
  AND ($1::text IS NULL OR j.caller = $1)
  AND ($3::text IS NULL OR j.recipe = $3)
  AND ($4::jsonb IS NULL OR j.labels @> $4)
  AND ($5::uuid IS NULL OR j.id < $5)
  AND ($6 OR j.deleted_at IS NULL)
ORDER BY j.id DESC
LIMIT $7

-- name: read_steps
SELECT s.*, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps s WHERE s.job_id = $1 ORDER BY s.no

-- name: read_step_counts
-- A wide fan-out as counts per state.
SELECT node, state, count(*) AS count, sum(failures) AS failures,
       min(started_at) AS started_at, max(finished_at) AS finished_at
FROM windlass.steps WHERE job_id = $1 AND index IS NOT NULL GROUP BY node, state ORDER BY node, state

-- name: read_nodes
SELECT s.*, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps s WHERE s.job_id = $1 AND s.index IS NULL ORDER BY s.no

-- name: read_events
-- The state of an event's step is read only for events that can hold what the step made (store/outputs.py).
SELECT e.*, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state,
       CASE WHEN e.payload IS NOT NULL AND e.type <> 'step.running' THEN (
           SELECT s.state FROM windlass.steps s WHERE s.job_id = $1 AND s.no = e.no
       ) END AS step_state
FROM windlass.events e
WHERE e.job_id = $1 AND e.seq > $2 AND e.seq < coalesce($3::int, 2147483647) ORDER BY e.seq LIMIT $4

-- name: read_events_newest
SELECT e.*, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state,
       CASE WHEN e.payload IS NOT NULL AND e.type <> 'step.running' THEN (
           SELECT s.state FROM windlass.steps s WHERE s.job_id = $1 AND s.no = e.no
       ) END AS step_state
FROM windlass.events e
WHERE e.job_id = $1 AND e.seq > $2 AND e.seq < coalesce($3::int, 2147483647) ORDER BY e.seq DESC LIMIT $4

-- name: read_ended
SELECT j.state, j.input, s.no, s.state AS step_state, s.output
FROM windlass.jobs j LEFT JOIN windlass.steps s ON s.job_id = j.id AND s.no = ANY($2::int[])
WHERE j.id = $1

-- name: read_find
SELECT id FROM windlass.jobs WHERE id >= $1 AND id <= $2 ORDER BY id LIMIT 2

-- name: read_last
SELECT id FROM windlass.jobs WHERE deleted_at IS NULL ORDER BY id DESC LIMIT 1

-- name: read_queue_ahead
-- Steps of the same handler and caller that are claimed before this one.
SELECT count(*) FROM (
    SELECT FROM windlass.steps s
    WHERE s.state = 'QUEUED' AND s.queue = $1
      AND s.lane = (SELECT own.lane FROM windlass.steps own WHERE own.job_id = $3 AND own.no = $4)
      AND (s.priority > $2 OR (s.priority = $2 AND (s.job_id, s.no) < ($3, $4)))
    LIMIT 1000
) AS ahead

-- name: read_queue_workers
SELECT count(*) FROM windlass.workers WHERE lost_at IS NULL AND lease_until > windlass.clock() AND $1 = ANY (queues)

-- name: read_owned
-- Whether the job is there for this caller; every caller's when $2 is NULL. What was deleted is not there.
SELECT FROM windlass.jobs WHERE id = $1 AND deleted_at IS NULL AND ($2::text IS NULL OR caller = $2)
