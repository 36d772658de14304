-- A job's graph and its results, in bounded reads.

-- name: graph_steps
-- A page of a job's steps in order of number.
SELECT s.*, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps s
WHERE s.job_id = $1 AND s.no > $2
  AND ($3::int IS NULL OR s.node = $3)
  AND ($4::text[] IS NULL OR s.state = ANY ($4))
ORDER BY s.no LIMIT $5

-- name: graph_waits
-- The waiting children of fan-outs. The caller already has the steps of the graph's own nodes.
SELECT s.*, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps s
WHERE s.job_id = $1 AND s.index IS NOT NULL AND s.state IN ('PARKED', 'HELD')
ORDER BY s.no LIMIT $2

-- name: graph_children
-- The children of fan-outs, one row per fan-out. Their numbers follow the order of their indexes.
SELECT node, array_agg(no ORDER BY no) AS numbers, array_agg(status ORDER BY no) AS statuses
FROM (
    SELECT node, no,
           state || CASE WHEN state IN ('PARKED', 'HELD') AND waiting_for IS NOT NULL
                         THEN ':' || split_part(waiting_for, ':', 1) ELSE '' END AS status
    FROM windlass.steps WHERE job_id = $1 AND index IS NOT NULL ORDER BY no LIMIT $2
) AS child
GROUP BY node ORDER BY node

-- name: graph_fan_outputs
-- The outputs of one fan-out's children in order: their numbers follow the order of their indexes.
SELECT index, state, output, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps
WHERE job_id = $1 AND node = $2 AND index > $3 ORDER BY no LIMIT $4

-- name: graph_fan_sizes
-- The size in bytes of each child's output, and the output itself if it may be a reference to an artifact.
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
-- Several jobs, each with the columns of `read_job`.
SELECT j.*, v.version AS recipe_version,
       -- include: read_job_age
FROM windlass.jobs j
-- include: list_recipe_version
WHERE j.id = ANY ($1::uuid[])
