-- A job's attempts and their logs, read from its events.

-- name: attempt_begins
-- The attempts that began after an event, of one step or of all. A worker's claim begins an attempt. Without a worker,
-- the wait for a child job or for an event begins it.
SELECT e.seq, e.at, e.type, e.no, e.attempt, e.payload, s.node, s.index, s.state, s.state AS step_state,
       (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM (
    SELECT seq, at, type, no, attempt, payload FROM windlass.events
    WHERE job_id = $1 AND seq > $2 AND ($3::int IS NULL OR no = $3) AND attempt > 0
      AND (type = 'step.running'
           OR (type = 'step.parked' AND (payload ->> 'waiting_for' = 'child' OR payload ->> 'waiting_for' LIKE 'event:%')))
    ORDER BY seq LIMIT $4
) AS e
JOIN windlass.steps s ON s.job_id = $1 AND s.no = e.no
ORDER BY e.seq

-- name: attempt_ends
-- For each attempt of these steps, the first event that ended it. A wait for an outside report does not end an attempt.
SELECT DISTINCT ON (no, attempt) no, attempt, at, type, payload,
       (SELECT s.state FROM windlass.steps s WHERE s.job_id = $1 AND s.no = e.no) AS step_state,
       (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.events e
WHERE job_id = $1 AND seq > $2 AND no = ANY ($3::int[]) AND attempt > 0
  AND (type = ANY ('{step.completed,step.failed,step.queued,step.held,step.cancelled,step.denied,step.quarantined}')
       OR (type = 'step.parked' AND payload ->> 'waiting_for' IN ('retry', 'snooze')))
ORDER BY no, attempt, seq

-- name: attempt_logs
-- The newest log events of a step.
SELECT seq, type, attempt, payload, (SELECT s.state FROM windlass.steps s WHERE s.job_id = $1 AND s.no = $2) AS step_state,
       (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.events
WHERE job_id = $1 AND no = $2 AND type = 'step.log' ORDER BY seq DESC LIMIT $3

-- name: attempt_step
SELECT s.*, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps s WHERE s.job_id = $1 AND s.no = $2

-- name: attempt_states
-- The states of some of a job's steps.
SELECT no, state FROM windlass.steps WHERE job_id = $1 AND no = ANY ($2::int[])

-- name: attempt_costs
SELECT c.no, s.node, s.index, c.attempt, c.provider, c.amount, c.tokens_in, c.tokens_out, c.seconds, c.at
FROM windlass.costs c JOIN windlass.steps s ON s.job_id = c.job_id AND s.no = c.no
WHERE c.job_id = $1 AND c.no = $2 ORDER BY c.attempt

-- name: attempt_work
-- The last provider job of the step.
SELECT job_id, no, round, attempt, provider, external_id, state, status, polls, due_at, created_at, submitted_at, ended_at
FROM windlass.provider_jobs WHERE job_id = $1 AND no = $2 ORDER BY round DESC LIMIT 1
