-- What a dashboard asks every few seconds. Nothing here reads more than it is allowed to.

-- name: gauge_queues
-- Every queue that holds something: how many steps, counted up to $1, and how old the oldest job among them is. The
-- index of queued steps is walked from queue to queue, and in each from one (lane, priority) to the next, through the
-- first 500 of them; a job's id begins with the millisecond in which it was made.
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
-- How many steps of each caller wait for a worker, for the router or for a slot; $1 of each kind are counted in all. Steps
-- are counted per job first, so that a fan-out of thousands looks its caller up once.
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
-- How many steps wait for a slot (a provider's place, a key's or money), counted up to $1.
SELECT count(*) FROM (SELECT FROM windlass.slots WHERE state = 'WAITING' LIMIT $1) AS waiting

-- name: gauge_tallies
-- Jobs by recipe and state since the installation is served, as the auditor counted them.
SELECT recipe, state, count, seconds FROM windlass.tallies ORDER BY recipe, state LIMIT $1

-- name: gauge_engines
-- Engines whose loops were seen to turn within this many seconds.
SELECT count(*) FROM windlass.engines WHERE seen_at > windlass.clock() - make_interval(secs => $1)

-- name: gauge_feed_lag
-- How long the oldest transaction under way holds back whoever follows the feed.
SELECT coalesce(extract(epoch FROM max(windlass.clock() - xact_start)), 0)::float8
FROM pg_stat_activity
WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()

-- name: gauge_now
SELECT windlass.clock()
