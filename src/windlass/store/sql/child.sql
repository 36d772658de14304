-- Child jobs.

-- name: child_kin
-- The values that jobs pass to the jobs they start. It includes the job that each is a retry of: a retry has `job.kept`
-- as its second event. A re-run that keeps nothing has no such event, and is left out. After a re-run from a step, that
-- event also names the nodes that start again.
SELECT j.id, j.caller, j.priority, j.depth, j.correlation_id,
       extract(epoch FROM j.deadline_at - windlass.clock())::float8,
       extract(epoch FROM j.expires_at - windlass.clock())::float8, j.is_ttl_default,
       CASE WHEN e.seq IS NOT NULL THEN j.retry_of END, e.payload ->> 'fresh',
       CASE WHEN j.policy IS NOT NULL THEN (
           SELECT f.payload ->> 'caller' FROM windlass.events f WHERE f.job_id = j.id AND f.seq = 1
       ) END
FROM windlass.jobs j
LEFT JOIN windlass.events e ON e.job_id = j.id AND e.seq = 2 AND e.type = 'job.kept'
WHERE j.id = ANY ($1::uuid[])

-- name: child_above
-- For jobs ($1) that are about to start a recipe ($2): all jobs of that recipe among them and their ancestors.
WITH RECURSIVE line AS (
    SELECT c.start, c.recipe AS called, j.id, j.recipe, j.parent_job
    FROM unnest($1::uuid[], $2::text[]) AS c (start, recipe) JOIN windlass.jobs j ON j.id = c.start
    UNION ALL
    SELECT l.start, l.called, j.id, j.recipe, j.parent_job FROM line l JOIN windlass.jobs j ON j.id = l.parent_job
)
SELECT line.start, line.recipe, line.id, j.input
FROM line JOIN windlass.jobs j ON j.id = line.id
WHERE line.recipe = line.called

-- name: child_deadline
-- Copies the parent's deadline as a time, not as a duration: clocks are read at different moments.
UPDATE windlass.jobs c
SET deadline_at = least(c.deadline_at, p.deadline_at), due_at = least(c.due_at, p.deadline_at)
FROM windlass.jobs p
WHERE c.id = ANY ($1::uuid[]) AND p.id = c.parent_job AND p.deadline_at IS NOT NULL

-- name: child_before
-- The last child job of each of these steps, if it ended without a result. Spawned jobs (attempt 0) belong to their
-- handler. Each parent's children are read once, for any number of its steps. A step is identified by its node and its
-- index in the fan-out, because in the new job it may have another number.
SELECT DISTINCT ON (c.parent_job, s.node, s.index) c.parent_job, s.node, s.index, c.id, c.plan, c.input
FROM (SELECT DISTINCT unnest($1::uuid[]) AS id) AS p
CROSS JOIN LATERAL (
    SELECT id, parent_job, parent_no, parent_attempt, plan, input FROM windlass.jobs
    WHERE parent_job = p.id AND parent_attempt > 0
      AND state IN ('FAILED', 'DENIED', 'TIMEOUT', 'CANCELLED', 'EXPIRED')
    OFFSET 0
) AS c
JOIN windlass.steps s ON s.job_id = c.parent_job AND s.no = c.parent_no AND s.node = ANY ($2::int[])
ORDER BY c.parent_job, s.node, s.index, c.parent_attempt DESC

-- name: child_spawner
-- The step whose handler spawns a job, and the number of jobs it has spawned.
SELECT j.state AS job_state, s.state, s.attempt, s.worker,
       (SELECT count(*) FROM windlass.jobs c WHERE c.parent_job = $1 AND c.parent_no = $2) AS spawned
FROM windlass.jobs j JOIN windlass.steps s ON s.job_id = j.id AND s.no = $2
WHERE j.id = $1
