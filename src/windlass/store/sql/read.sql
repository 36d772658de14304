-- Reads for people and programs. These statements only read.

-- fragment: read_job_age
-- When the job last changed, by its last event, and when it was read. Found by the event's key, so that no change of a job
-- has to write it.
(SELECT e.at FROM windlass.events e WHERE e.job_id = j.id AND e.seq = j.event_seq) AS updated_at,
(SELECT windlass.clock()) AS read_at,
-- Its last undo job, that job's state, and whether it asks first. Jobs without an undo cost one probe of an index.
(SELECT u.undo_job FROM windlass.undos u WHERE u.job_id = j.id ORDER BY u.part DESC LIMIT 1) AS undo_job_id,
(SELECT undo.state || CASE WHEN u.is_asked THEN ' asked' ELSE '' END
 FROM windlass.undos u JOIN windlass.jobs undo ON undo.id = u.undo_job
 WHERE u.job_id = j.id ORDER BY u.part DESC LIMIT 1) AS undo_state,
EXISTS (SELECT FROM windlass.undo_kept k WHERE k.job_id = j.id) AS has_kept_effects

-- name: read_job
SELECT j.*, v.version AS recipe_version,
       -- include: read_job_age
FROM windlass.jobs j
-- include: list_recipe_version
WHERE j.id = $1

-- fragment: read_jobs_rest
  AND ($3::text IS NULL OR j.recipe = $3)
  AND ($4::jsonb IS NULL OR j.labels @> $4)
  AND ($5::uuid IS NULL OR j.id < $5)
  AND ($6 OR j.deleted_at IS NULL)
ORDER BY j.id DESC
LIMIT $7

-- name: read_jobs
SELECT j.*, NULL::int AS recipe_version,
       -- include: read_job_age
FROM windlass.jobs j
WHERE ($1::text IS NULL OR j.caller = $1)
  AND ($2::text[] IS NULL OR j.state = ANY($2))
-- include: read_jobs_rest

-- name: read_jobs_trouble
-- Lists jobs in final states other than COMPLETED: these are few among many, so they have an index.
SELECT j.*, NULL::int AS recipe_version,
       -- include: read_job_age
FROM windlass.jobs j
WHERE j.trouble = ANY($2::text[])
  AND ($1::text IS NULL OR j.caller = $1)
-- include: read_jobs_rest

-- name: read_steps
SELECT s.*, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps s WHERE s.job_id = $1 ORDER BY s.no

-- name: read_step_counts
-- The children of wide fan-outs, counted by state.
SELECT node, state, count(*) AS count, sum(failures) AS failures,
       min(started_at) AS started_at, max(finished_at) AS finished_at
FROM windlass.steps WHERE job_id = $1 AND index IS NOT NULL GROUP BY node, state ORDER BY node, state

-- name: read_nodes
SELECT s.*, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps s WHERE s.job_id = $1 AND s.index IS NULL ORDER BY s.no

-- fragment: read_events_of
-- Reads the state of an event's step only for events that may contain the step's content (store/outputs.py).
SELECT e.*, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state,
       CASE WHEN e.payload IS NOT NULL AND e.type <> 'step.running' THEN (
           SELECT s.state FROM windlass.steps s WHERE s.job_id = $1 AND s.no = e.no
       ) END AS step_state
FROM windlass.events e
WHERE e.job_id = $1 AND e.seq > $2 AND e.seq < coalesce($3::int, 2147483647)

-- name: read_events
-- include: read_events_of
ORDER BY e.seq LIMIT $4

-- name: read_events_newest
-- include: read_events_of
ORDER BY e.seq DESC LIMIT $4

-- name: read_ended
SELECT j.state, j.input, s.no, s.state AS step_state, s.output
FROM windlass.jobs j LEFT JOIN windlass.steps s ON s.job_id = j.id AND s.no = ANY($2::int[])
WHERE j.id = $1

-- name: read_find
SELECT id FROM windlass.jobs WHERE id >= $1 AND id <= $2 ORDER BY id LIMIT 2

-- name: read_last
SELECT id FROM windlass.jobs WHERE deleted_at IS NULL ORDER BY id DESC LIMIT 1

-- name: read_queue_ahead
-- Steps of the same handler and caller that will be claimed before this step, counted up to 1000.
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
-- Returns a row if the caller may see the job. $2 NULL means any caller. A deleted job gives no row.
SELECT FROM windlass.jobs WHERE id = $1 AND deleted_at IS NULL AND ($2::text IS NULL OR caller = $2)
