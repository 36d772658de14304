-- Workers and their leases.

-- fragment: worker_leased
FROM windlass.workers w LEFT JOIN windlass.capabilities c ON c.worker = w.id
WHERE w.lost_at IS NULL

-- name: worker_enlist
WITH worker AS (
    INSERT INTO windlass.workers (id, host, pid, queues, concurrency, started_at, seen_at, lease_until)
    VALUES ($1, $2, $3, $4, $5, windlass.clock(), windlass.clock(), windlass.clock() + make_interval(secs => $6))
    ON CONFLICT (id) DO NOTHING
)
INSERT INTO windlass.capabilities (worker, host, handlers, lease_s, since)
VALUES ($1, $2, $7, $6, windlass.clock())
ON CONFLICT (worker) DO NOTHING

-- name: worker_renew
-- Renews an expired lease too, unless the worker was marked as lost. Until then the worker still owns its steps, and
-- the database may have been down when the renewal was due. A lost worker never comes back under the same id.
UPDATE windlass.workers
SET seen_at = windlass.clock(), lease_until = windlass.clock() + make_interval(secs => $2),
    services = coalesce($3::jsonb, services)
WHERE id = $1 AND lost_at IS NULL
RETURNING id

-- name: worker_dismiss
-- Removes a worker that shuts down and holds no more attempts.
WITH gone AS (
    DELETE FROM windlass.workers w WHERE id = $1
      AND NOT EXISTS (SELECT FROM windlass.steps s WHERE s.worker = w.id AND s.state = 'RUNNING')
    RETURNING id
)
UPDATE windlass.capabilities c SET until = windlass.clock() FROM gone WHERE c.worker = gone.id

-- name: worker_due
-- Due now if a lost worker has steps, or if no engine checked the leases for $1 parts of the shortest lease. Otherwise
-- due when the first lease ends, or $2 seconds after an attempt's time limit.
SELECT CASE
    WHEN EXISTS (SELECT FROM windlass.steps s JOIN windlass.workers w ON w.id = s.worker
                 WHERE s.state = 'RUNNING' AND w.lost_at IS NOT NULL)
      OR (SELECT looked_at FROM windlass.installation)
         < windlass.clock() - make_interval(secs => $1::float8 * coalesce(lease.shortest_s, 15))
    THEN windlass.clock()
    ELSE least(
        lease.until,
        (SELECT greatest(min(wake_at), (SELECT back_at FROM windlass.installation))
         FROM windlass.steps WHERE state = 'RUNNING' HAVING min(wake_at) IS NOT NULL) + make_interval(secs => $2::float8)
    ) END
FROM (
    SELECT min(w.lease_until) AS until, min(coalesce(c.lease_s, 15))::float8 AS shortest_s
    -- include: worker_leased
) AS lease

-- name: worker_mark_lost
-- Records that an engine checked the leases, and marks workers with expired leases as lost. It does neither if the last
-- check is too long ago ($1 parts of the shortest lease): then the gap is credited first (core/lease.py). Returns
-- whether it did.
WITH lease AS (
    SELECT min(coalesce(c.lease_s, 15)) AS shortest_s
    -- include: worker_leased
), looked AS (
    UPDATE windlass.installation i SET looked_at = windlass.clock()
    FROM lease
    WHERE i.looked_at > windlass.clock() OR lease.shortest_s IS NULL
       OR i.looked_at >= windlass.clock() - make_interval(secs => $1::float8 * lease.shortest_s)
    RETURNING i.one
), lost AS (
    UPDATE windlass.workers w SET lost_at = windlass.clock()
    FROM looked
    WHERE w.lost_at IS NULL AND w.lease_until <= windlass.clock()
)
SELECT EXISTS (SELECT FROM looked)

-- name: worker_look_lock
-- The time since an engine last checked the leases. The row lock keeps other engines from crediting the same gap.
SELECT extract(epoch FROM windlass.clock() - looked_at)::float8 AS gap_s
FROM windlass.installation FOR UPDATE

-- name: worker_leases
SELECT w.id, coalesce(c.lease_s, 15)::float8 AS lease_s,
       extract(epoch FROM w.lease_until - windlass.clock())::float8 AS left_s
-- include: worker_leased
ORDER BY w.id
FOR UPDATE OF w

-- name: worker_leases_put
-- Writes the rest of each lease after a gap. A worker with nothing left is lost.
WITH looked AS (
    UPDATE windlass.installation SET looked_at = windlass.clock(), back_at = windlass.clock()
)
UPDATE windlass.workers w
SET lease_until = windlass.clock() + make_interval(secs => d.left_s),
    lost_at = CASE WHEN d.left_s <= 0 THEN windlass.clock() END
FROM unnest($1::uuid[], $2::float8[]) AS d (id, left_s)
WHERE w.id = d.id

-- name: worker_died
-- The process is dead, so its lease ends now.
UPDATE windlass.workers SET lost_at = windlass.clock(), lease_until = least(lease_until, windlass.clock())
WHERE id = $1 AND lost_at IS NULL

-- name: worker_forget
-- Lost workers are kept for a day, so that people can see them.
WITH gone AS (
    DELETE FROM windlass.workers w
    WHERE lost_at < windlass.clock() - interval '1 day'
      AND NOT EXISTS (SELECT FROM windlass.steps s WHERE s.worker = w.id AND s.state = 'RUNNING')
)
-- Their handlers are kept for a month, so that `why` can name the last worker that had a handler.
DELETE FROM windlass.capabilities c
WHERE coalesce(c.until, c.since) < windlass.clock() - interval '30 days'
  AND NOT EXISTS (SELECT FROM windlass.workers w WHERE w.id = c.worker)

-- name: worker_steps
-- The attempts that workers run (by steps_running), at most $1.
SELECT s.worker, s.job_id, s.no, s.node, s.index, s.started_at, j.plan FROM (
    SELECT worker, job_id, no, node, index, started_at FROM windlass.steps WHERE state = 'RUNNING' LIMIT $1
) s
JOIN windlass.jobs j ON j.id = s.job_id
ORDER BY s.started_at, s.job_id, s.no

-- name: worker_list
SELECT w.id, w.host, w.pid, w.queues, w.concurrency, w.started_at, w.seen_at, w.lease_until, w.lost_at, w.services,
       (SELECT count(*) FROM windlass.steps s WHERE s.worker = w.id AND s.state = 'RUNNING') AS running
FROM windlass.workers w ORDER BY started_at
