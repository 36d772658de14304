-- Work that is done elsewhere and reported back.

-- name: callback_place
-- The step that a token speaks for, and its job, as they are now.
SELECT j.state AS job_state, j.plan, s.node, s.state AS step_state
FROM windlass.jobs j JOIN windlass.steps s ON s.job_id = j.id
WHERE j.id = $1 AND s.no = $2 AND j.deleted_at IS NULL

-- name: callback_children
-- Which nodes these children of fan-outs belong to.
SELECT no, node, index FROM windlass.steps WHERE job_id = $1 AND no = ANY ($2::int[])
