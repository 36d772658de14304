-- External work that reports back through a callback token.

-- name: callback_place
-- The current state of the step that a token belongs to, and of its job.
SELECT j.state AS job_state, j.plan, s.node, s.state AS step_state
FROM windlass.jobs j JOIN windlass.steps s ON s.job_id = j.id
WHERE j.id = $1 AND s.no = $2 AND j.deleted_at IS NULL
