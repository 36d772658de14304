-- The gauges of a dashboard, read every few seconds. Every statement reads a bounded number of rows.

-- name: gauge_queues
-- For every queue with steps: the number of steps, counted up to $1, and the age of their oldest job. The walk goes
-- through the index of queued steps from queue to queue, and in each queue through the first 500 pairs of lane and
-- priority. A job's id starts with the millisecond of its creation.
WITH RECURSIVE name AS (
    (SELECT queue FROM windlass.steps WHERE state = 'QUEUED' ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT next.queue FROM name CROSS JOIN LATERAL (
        SELECT s.queue FROM windlass.steps s WHERE s.state = 'QUEUED' AND s.queue > name.queue ORDER BY s.queue LIMIT 1
    ) AS next
), queues AS (
    SELECT name.queue, (
        WITH RECURSIVE place AS (
            (SELECT s.lane, s.priority, s.job_id FROM windlass.steps s
             WHERE s.state = 'QUEUED' AND s.queue = name.queue ORDER BY s.lane, s.priority DESC, s.job_id LIMIT 1)
            UNION ALL
            SELECT next.lane, next.priority, next.job_id
            FROM place CROSS JOIN LATERAL (
                (SELECT s.lane, s.priority, s.job_id FROM windlass.steps s
                 WHERE s.state = 'QUEUED' AND s.queue = name.queue AND s.lane = place.lane
                   AND s.priority < place.priority
                 ORDER BY s.priority DESC, s.job_id LIMIT 1)
                UNION ALL
                (SELECT s.lane, s.priority, s.job_id FROM windlass.steps s
                 WHERE s.state = 'QUEUED' AND s.queue = name.queue AND s.lane > place.lane
                 ORDER BY s.lane, s.priority DESC, s.job_id LIMIT 1)
                LIMIT 1
            ) AS next
        )
        SELECT min(few.job_id::text) FROM (SELECT place.job_id FROM place LIMIT 500) AS few
    ) AS oldest
    FROM name
)
SELECT q.queue,
       (SELECT count(*) FROM (
            SELECT FROM windlass.steps s WHERE s.state = 'QUEUED' AND s.queue = q.queue LIMIT $1
        ) AS held) AS count,
       greatest(0, extract(epoch FROM windlass.clock())
           - ('x' || left(replace(q.oldest, '-', ''), 12))::bit(48)::bigint / 1000.0)::float8 AS age_s
FROM queues q

-- name: gauge_callers
-- The number of each caller's steps that wait for a worker, the router or a slot; at most $1 of each kind are counted.
-- Steps are first counted per job, so that a fan-out of thousands looks up its caller once.
SELECT j.caller, sum(q.count)::int AS count
FROM (
    SELECT s.job_id, count(*) AS count
    FROM (
        (SELECT job_id FROM windlass.steps WHERE state = 'QUEUED' LIMIT $1)
        UNION ALL
        (SELECT job_id FROM windlass.steps WHERE state = 'READY' LIMIT $1)
        UNION ALL
        (SELECT job_id FROM windlass.slots WHERE state = 'WAITING' LIMIT $1)
    ) AS s
    GROUP BY s.job_id
) AS q
JOIN windlass.jobs j ON j.id = q.job_id
GROUP BY j.caller

-- name: gauge_held
-- The number of steps that wait for a slot (a provider's place, a key or money), counted up to $1.
SELECT count(*) FROM (SELECT FROM windlass.slots WHERE state = 'WAITING' LIMIT $1) AS waiting

-- name: gauge_tallies
-- Jobs by recipe and state since the installation became a service, as the auditor counted them.
SELECT recipe, state, count, seconds FROM windlass.tallies ORDER BY recipe, state LIMIT $1

-- name: gauge_engines
-- The number of engines whose loops ran within this many seconds.
SELECT count(*) FROM windlass.engines WHERE seen_at > windlass.clock() - make_interval(secs => $1)

-- name: gauge_feed_lag
-- The time for which the oldest open transaction has delayed the followers of the feed.
SELECT coalesce(extract(epoch FROM max(windlass.clock() - xact_start)), 0)::float8
FROM pg_stat_activity
WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()

-- name: gauge_now
SELECT windlass.clock()
