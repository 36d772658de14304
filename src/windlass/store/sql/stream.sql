-- The facts that streams need besides the events.

-- name: stream_nodes
-- The nodes of fan-out children.
SELECT no, node FROM windlass.steps WHERE job_id = $1 AND no = ANY ($2::int[])

-- name: stream_jobs
-- Jobs for their documents, without the inputs, which may be large.
SELECT j.id, j.recipe, v.version AS recipe_version, j.plan, j.state, j.caller, j.priority, j.is_paused, j.event_seq,
       j.steps_total, j.steps_open, j.steps_failed, NULL::json AS input, j.error, j.labels, j.progress,
       j.idempotency_key, j.correlation_id, j.parent_job, j.parent_no, j.retry_of, j.created_at, j.started_at,
       j.finished_at, j.deadline_at, j.expires_at, j.deleted_at,
       -- include: read_job_age
FROM windlass.jobs j
-- include: list_recipe_version
WHERE j.id = ANY ($1::uuid[])

-- name: stream_steps
-- Steps of several jobs, without their inputs and outputs.
SELECT s.job_id, s.no, s.node, s.index, s.state, s.queue, s.attempt, s.failures, s.losses, s.worker, s.wake_at,
       s.waiting_for, s.error, s.progress, s.started_at, s.finished_at,
       (SELECT j.state FROM windlass.jobs j WHERE j.id = s.job_id) AS job_state
FROM unnest($1::uuid[], $2::int[]) AS w (job_id, no)
CROSS JOIN LATERAL (SELECT * FROM windlass.steps s WHERE s.job_id = w.job_id AND s.no = w.no OFFSET 0) AS s
ORDER BY s.job_id, s.no

-- name: stream_fans
-- The progress of the fan-outs of these jobs: a row without a state has the size, and one row per state the count.
SELECT job_id, node, CASE WHEN index IS NULL THEN NULL ELSE state END AS state, count(*) AS count, max(fan) AS total
FROM windlass.steps WHERE job_id = ANY ($1::uuid[])
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
