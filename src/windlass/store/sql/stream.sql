-- What streams need to know beside the events.

-- name: stream_nodes
-- Which nodes the children of fan-outs belong to.
SELECT no, node FROM windlass.steps WHERE job_id = $1 AND no = ANY ($2::int[])

-- name: stream_jobs
-- Jobs as their documents need them: without what went into them, which may be large.
SELECT j.id, j.recipe, r.version AS recipe_version, j.plan, j.state, j.caller, j.priority, j.is_paused, j.event_seq,
       j.steps_total, j.steps_open, j.steps_failed, NULL::json AS input, j.error, j.labels, j.progress,
       j.idempotency_key, j.correlation_id, j.parent_job, j.parent_no, j.retry_of, j.created_at, j.started_at,
       j.finished_at, j.deadline_at, j.expires_at, j.deleted_at
FROM windlass.jobs j
LEFT JOIN LATERAL (
    SELECT version FROM windlass.recipes r WHERE r.name = j.recipe AND r.plan = j.plan ORDER BY version DESC LIMIT 1
) r ON true
WHERE j.id = ANY ($1::uuid[])

-- name: stream_steps
-- Steps of several jobs, without what went into them and what came out.
SELECT s.job_id, s.no, s.node, s.index, s.state, s.queue, s.attempt, s.failures, s.losses, s.worker, s.wake_at,
       s.waiting_for, s.error, s.progress, s.started_at, s.finished_at,
       (SELECT j.state FROM windlass.jobs j WHERE j.id = s.job_id) AS job_state
FROM unnest($1::uuid[], $2::int[]) AS w (job_id, no)
CROSS JOIN LATERAL (SELECT * FROM windlass.steps s WHERE s.job_id = w.job_id AND s.no = w.no OFFSET 0) AS s
ORDER BY s.job_id, s.no

-- name: stream_fans
-- How far the fan-outs of these jobs are: for each a row without a state, which has its size, and one for each state.
SELECT job_id, node, CASE WHEN index IS NULL THEN NULL ELSE state END AS state, count(*) AS count, max(fan) AS total
FROM windlass.steps WHERE job_id = ANY ($1::uuid[])
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
