-- Workers and their leases.

-- name: worker_enlist
INSERT INTO windlass.workers (id, host, pid, queues, concurrency, started_at, seen_at, lease_until)
VALUES ($1, $2, $3, $4, $5, windlass.clock(), windlass.clock(), windlass.clock() + make_interval(secs => $6))
ON CONFLICT (id) DO NOTHING

-- name: worker_renew
-- A lease that ran out is never revived, even if nobody noticed yet.
UPDATE windlass.workers
SET seen_at = windlass.clock(), lease_until = windlass.clock() + make_interval(secs => $2)
WHERE id = $1 AND lost_at IS NULL AND lease_until > windlass.clock()
RETURNING id

-- name: worker_dismiss
-- A worker that leaves in good order holds nothing any more.
DELETE FROM windlass.workers w WHERE id = $1
  AND NOT EXISTS (SELECT FROM windlass.steps s WHERE s.worker = w.id AND s.state = 'RUNNING')

-- name: worker_mark_lost
UPDATE windlass.workers SET lost_at = windlass.clock()
WHERE lost_at IS NULL AND lease_until <= windlass.clock()
RETURNING id

-- name: worker_forget
-- Lost workers are kept for a day, so that a person can see them.
DELETE FROM windlass.workers w
WHERE lost_at < windlass.clock() - interval '1 day'
  AND NOT EXISTS (SELECT FROM windlass.steps s WHERE s.worker = w.id AND s.state = 'RUNNING')

-- name: worker_steps
-- What workers have in hand (by steps_running), $1 at most.
SELECT s.worker, s.job_id, s.no, s.node, s.index, s.started_at, j.plan FROM (
    SELECT worker, job_id, no, node, index, started_at FROM windlass.steps WHERE state = 'RUNNING' LIMIT $1
) s
JOIN windlass.jobs j ON j.id = s.job_id
ORDER BY s.started_at, s.job_id, s.no

-- name: worker_list
SELECT w.*, (SELECT count(*) FROM windlass.steps s WHERE s.worker = w.id AND s.state = 'RUNNING') AS running
FROM windlass.workers w ORDER BY started_at
