-- Work that is done elsewhere and reported back.

-- name: callback_place
-- The step that a token speaks for, and its job, as they are now.
SELECT j.state AS job_state, j.plan, s.node, s.state AS step_state
FROM windlass.jobs j JOIN windlass.steps s ON s.job_id = j.id
WHERE j.id = $1 AND s.no = $2 AND j.deleted_at IS NULL

-- name: work_hasten
-- A webhook told that the work has ended, and not how: the poller asks now and not by its schedule. One that is asking
-- already is overtaken; what both find out is settled once. The odd spellings keep the index by external id in use, also
-- when the plan was made while the table was empty.
UPDATE windlass.provider_jobs SET due_at = windlass.clock()
WHERE provider = $1 AND external_id = $2 AND state || '' = 'RUNNING'
  AND coalesce(due_at, 'infinity') > windlass.clock()
RETURNING true
