-- A job's graph and its results, in bounded looks.

-- name: graph_steps
-- A page of a job's steps in the order of their numbers.
SELECT s.*, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps s
WHERE s.job_id = $1 AND s.no > $2
  AND ($3::int IS NULL OR s.node = $3)
  AND ($4::text[] IS NULL OR s.state = ANY ($4))
ORDER BY s.no LIMIT $5

-- name: graph_waits
-- The waiting children of fan-outs; those of the graph's own nodes are known already.
SELECT s.*, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps s
WHERE s.job_id = $1 AND s.index IS NOT NULL AND s.state IN ('PARKED', 'HELD')
ORDER BY s.no LIMIT $2

-- name: graph_children
-- The children of fan-outs, one row a fan-out. They are numbered in the order of their places.
SELECT node, array_agg(no ORDER BY no) AS numbers, array_agg(status ORDER BY no) AS statuses
FROM (
    SELECT node, no,
           state || CASE WHEN state IN ('PARKED', 'HELD') AND waiting_for IS NOT NULL
                         THEN ':' || split_part(waiting_for, ':', 1) ELSE '' END AS status
    FROM windlass.steps WHERE job_id = $1 AND index IS NOT NULL ORDER BY no LIMIT $2
) AS child
GROUP BY node ORDER BY node

-- name: graph_fan_outputs
-- What the children of one fan-out returned, in order: they are numbered in the order of their places.
SELECT index, state, output, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps
WHERE job_id = $1 AND node = $2 AND index > $3 ORDER BY no LIMIT $4

-- name: graph_fan_sizes
-- How many bytes each child of a fan-out returned. What may be the name of an artifact comes as well.
SELECT no, state, octet_length(output::text) AS size,
       CASE WHEN octet_length(output::text) < 300 AND output::text LIKE '%$artifact%' THEN output END AS ref,
       (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps
WHERE job_id = $1 AND node = $2 AND index IS NOT NULL AND no > $3 ORDER BY no LIMIT $4

-- name: graph_fan_texts
SELECT state, output, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps
WHERE job_id = $1 AND node = $2 AND index IS NOT NULL AND no BETWEEN $3 AND $4 ORDER BY no

-- name: graph_output
SELECT state, fan, output, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps WHERE job_id = $1 AND no = $2

-- name: graph_jobs
-- Several jobs at once, each as `read_job` gives it.
SELECT j.*, r.version AS recipe_version FROM windlass.jobs j
LEFT JOIN LATERAL (
    SELECT version FROM windlass.recipes r WHERE r.name = j.recipe AND r.plan = j.plan ORDER BY version DESC LIMIT 1
) r ON true
WHERE j.id = ANY ($1::uuid[])
