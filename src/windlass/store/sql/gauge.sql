-- What a dashboard asks every few seconds. Nothing here reads more than it is allowed to.

-- name: gauge_queues
-- Every queue that holds something: how many steps, counted up to $1, and how old the oldest job among them is. The
-- index of queued steps is walked from one (queue, priority) to the next, of which there are few; a job's id begins
-- with the millisecond in which it was made.
WITH RECURSIVE place AS (
    (SELECT queue, priority, job_id FROM windlass.steps
     WHERE state = 'QUEUED' ORDER BY queue, priority DESC, job_id LIMIT 1)
    UNION ALL
    SELECT next.queue, next.priority, next.job_id
    FROM place CROSS JOIN LATERAL (
        SELECT same.*, 0 AS rank FROM (
            SELECT s.queue, s.priority, s.job_id FROM windlass.steps s
            WHERE s.state = 'QUEUED' AND s.queue = place.queue AND s.priority < place.priority
            ORDER BY s.priority DESC, s.job_id LIMIT 1
        ) AS same
        UNION ALL
        SELECT other.*, 1 AS rank FROM (
            SELECT s.queue, s.priority, s.job_id FROM windlass.steps s
            WHERE s.state = 'QUEUED' AND s.queue > place.queue
            ORDER BY s.queue, s.priority DESC, s.job_id LIMIT 1
        ) AS other
        ORDER BY rank LIMIT 1
    ) AS next
), queues AS (
    SELECT queue, min(job_id::text) AS oldest FROM place GROUP BY queue
)
SELECT q.queue,
       (SELECT count(*) FROM (
            SELECT FROM windlass.steps s WHERE s.state = 'QUEUED' AND s.queue = q.queue LIMIT $1
        ) AS held) AS count,
       greatest(0, extract(epoch FROM windlass.clock())
           - ('x' || left(replace(q.oldest, '-', ''), 12))::bit(48)::bigint / 1000.0)::float8 AS age_s
FROM queues q

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
