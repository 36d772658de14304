-- Work that is done elsewhere and reported back.

-- name: callback_place
-- The step that a token speaks for, and its job, as they are now.
SELECT j.state AS job_state, j.plan, s.node, s.state AS step_state
FROM windlass.jobs j JOIN windlass.steps s ON s.job_id = j.id
WHERE j.id = $1 AND s.no = $2 AND j.deleted_at IS NULL
