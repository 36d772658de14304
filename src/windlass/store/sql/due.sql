-- When each duty of the engine has something to do next (engine/loops/duty.py). A statement `due_…` gives one moment, or
-- nothing; a moment that is not in the future means now.

-- name: due_times
-- One look for all duties: in place of `:duties` stand their own statements, in order. It notes that an engine looked at
-- the leases, at most once a second, unless the last look was too long ago ($1 parts of the shortest lease): that is left
-- to the duty that finds lost workers.
WITH lease AS MATERIALIZED (
    SELECT min(coalesce(c.lease_s, 15))::float8 AS shortest_s
    FROM windlass.workers w LEFT JOIN windlass.capabilities c ON c.worker = w.id
    WHERE w.lost_at IS NULL
), looked AS (
    UPDATE windlass.installation i SET looked_at = windlass.clock()
    FROM lease
    WHERE i.looked_at > windlass.clock()
       OR i.looked_at < windlass.clock() - make_interval(secs => least(1, lease.shortest_s / 6))
          AND (lease.shortest_s IS NULL
               OR i.looked_at >= windlass.clock() - make_interval(secs => $1::float8 * lease.shortest_s))
)
SELECT ARRAY[:duties]::timestamptz[] AS moments, (SELECT shortest_s FROM lease) AS shortest_s, windlass.clock() AS now

-- name: due_waker
SELECT min(wake_at) FROM windlass.steps WHERE state = 'PARKED' AND wake_at IS NOT NULL

-- name: due_expirer
SELECT min(due_at) FROM windlass.jobs WHERE due_at IS NOT NULL

-- name: due_rescuer
-- Now, if a lost worker has steps or no engine looked for $1 parts of the shortest lease; else when the first lease is
-- over, or an attempt has had its time limit and $2 seconds more.
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
    FROM windlass.workers w LEFT JOIN windlass.capabilities c ON c.worker = w.id
    WHERE w.lost_at IS NULL
) AS lease

-- name: due_relay
SELECT windlass.clock() WHERE EXISTS (SELECT FROM windlass.inbox)

-- name: due_answerer
SELECT windlass.clock() WHERE EXISTS (SELECT FROM windlass.provider_events WHERE state = 'DUE')

-- name: due_router
SELECT windlass.clock() WHERE EXISTS (
    SELECT FROM windlass.steps s JOIN windlass.jobs j ON j.id = s.job_id WHERE s.state = 'READY' AND NOT j.is_paused
)

-- name: due_granter
SELECT CASE WHEN EXISTS (SELECT FROM windlass.slot_changes) THEN windlass.clock()
            ELSE (SELECT min(grant_at) FROM windlass.providers) END
