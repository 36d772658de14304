-- Events that are sent to jobs, and the steps that wait for them. The caller of every statement holds the job's row
-- lock.

-- name: waits_put
INSERT INTO windlass.waits (job_id, no, name, match)
SELECT * FROM unnest($1::uuid[], $2::int[], $3::text[], $4::json[])
ON CONFLICT (job_id, no) DO UPDATE SET name = excluded.name, match = excluded.match

-- name: waits_drop
-- Row by row: a join that was planned while the table was empty would always read the whole table.
DELETE FROM windlass.waits WHERE ctid = ANY (ARRAY(
    SELECT w.at FROM unnest($1::uuid[], $2::int[]) AS d (job_id, no)
    CROSS JOIN LATERAL (SELECT ctid AS at FROM windlass.waits WHERE job_id = d.job_id AND no = d.no LIMIT 1) AS w
))

-- name: waits_clear
DELETE FROM windlass.waits WHERE job_id = ANY ($1::uuid[])

-- name: waits_of
-- The order of waiting is unknown, so the first step of the recipe goes first.
SELECT w.no, w.match, s.node, s.attempt
FROM windlass.waits w
-- OFFSET 0 makes the planner go from the waits to their steps, not the other way.
CROSS JOIN LATERAL (
    SELECT node, attempt FROM windlass.steps WHERE job_id = w.job_id AND no = w.no OFFSET 0
) AS s
WHERE w.job_id = $1 AND w.name = $2
ORDER BY w.no

-- name: signal_job
SELECT j.state, j.plan FROM windlass.jobs j WHERE j.id = $1 AND j.deleted_at IS NULL

-- name: signal_get
SELECT name, body, taken_no FROM windlass.signals WHERE job_id = $1 AND id = $2

-- name: signal_kept
-- The number of stored events that no step has taken.
SELECT count(*) FROM windlass.signals WHERE job_id = $1 AND taken_no IS NULL

-- name: signal_put
INSERT INTO windlass.signals (job_id, id, name, body, sender, at, taken_no)
VALUES ($1, $2, $3, $4, $5, windlass.clock(), $6)

-- name: waits_get
SELECT name, match FROM windlass.waits WHERE job_id = $1 AND no = $2

-- name: signal_early
-- Events that arrived before a step waited for them, in order of arrival.
SELECT job_id, id, name, body FROM windlass.signals
WHERE job_id = ANY ($1::uuid[]) AND name = ANY ($2::text[]) AND taken_no IS NULL
ORDER BY seq

-- name: signal_take
-- Row by row, for the reason given at waits_drop.
UPDATE windlass.signals s SET taken_no = d.no
FROM (
    SELECT d.no, s.at FROM unnest($1::uuid[], $2::text[], $3::int[]) AS d (job_id, id, no)
    CROSS JOIN LATERAL (SELECT ctid AS at FROM windlass.signals WHERE job_id = d.job_id AND id = d.id LIMIT 1) AS s
) AS d
WHERE s.ctid = d.at

-- name: signal_list
SELECT id, name, body, sender, at, taken_no FROM windlass.signals WHERE job_id = $1 ORDER BY seq LIMIT $2
