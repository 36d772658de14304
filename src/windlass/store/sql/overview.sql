-- The overview page. Each statement reads a bounded number of rows, by an index that exists for other reasons.

-- name: overview_minutes
-- The ends of jobs in the last $1 minutes, per minute; reads at most the newest $2 rows. A cancelled job is not a
-- failure.
SELECT minute, coalesce(sum(count) FILTER (WHERE state = 'COMPLETED'), 0)::int AS completed,
       coalesce(sum(count) FILTER (WHERE state NOT IN ('COMPLETED', 'CANCELLED')), 0)::int AS failed, count(*) AS rows
FROM (
    SELECT minute, state, count FROM windlass.minutes
    WHERE minute > windlass.clock() - make_interval(mins => $1) ORDER BY minute DESC LIMIT $2
) m
GROUP BY minute

-- name: overview_recipes
-- The ends of jobs by recipe and duration, and the part of them in the last $3 minutes.
SELECT recipe, state, length, sum(count)::int AS count,
       coalesce(sum(count) FILTER (WHERE minute > windlass.clock() - make_interval(mins => $3)), 0)::int AS late
FROM (
    SELECT minute, recipe, state, length, count FROM windlass.minutes
    WHERE minute > windlass.clock() - make_interval(mins => $1) AND state <> 'CANCELLED'
    ORDER BY minute DESC LIMIT $2
) m
GROUP BY recipe, state, length

-- name: overview_ended_caller
-- The ends of one caller's jobs, among its newest $2 jobs (by jobs_caller).
SELECT date_trunc('minute', j.finished_at) AS minute, j.recipe, j.state,
       extract(epoch FROM j.finished_at - j.created_at)::float8 AS seconds
FROM (
    SELECT recipe, state, created_at, finished_at FROM windlass.jobs WHERE caller = $3 ORDER BY id DESC LIMIT $2
) j
WHERE j.finished_at > windlass.clock() - make_interval(mins => $1)

-- name: overview_running
-- Running attempts (by steps_running), at most $1.
SELECT s.queue, count(*) AS steps FROM (SELECT queue FROM windlass.steps WHERE state = 'RUNNING' LIMIT $1) s
GROUP BY s.queue

-- name: overview_waits
-- Jobs that wait for an event, by event name; reads at most the newest $1 waits. Paused jobs do not count.
SELECT w.name, count(DISTINCT w.job_id) AS jobs, min(w.job_id::text)::uuid AS oldest
FROM (SELECT job_id, name FROM windlass.waits ORDER BY job_id DESC, no DESC LIMIT $1) w
JOIN windlass.jobs j ON j.id = w.job_id AND j.due_at IS NOT NULL AND NOT j.is_paused
                    AND ($2::text IS NULL OR j.caller = $2)
GROUP BY w.name ORDER BY jobs DESC, w.name

-- name: overview_short
-- Steps that wait for money, by exhausted budget; reads at most $1 steps (by slots_short).
SELECT k.behind, count(*) AS steps, count(DISTINCT k.job_id) AS jobs, min(k.job_id::text)::uuid AS oldest
FROM (
    SELECT job_id, behind FROM windlass.slots
    WHERE state = 'WAITING' AND behind <> 'key' AND ($2::text IS NULL OR caller = $2) LIMIT $1
) k
JOIN windlass.jobs j ON j.id = k.job_id AND j.due_at IS NOT NULL AND NOT j.is_paused
GROUP BY k.behind ORDER BY steps DESC, k.behind

-- name: overview_workers
-- The number of live workers per queue, and the number of workers that were lost recently.
SELECT coalesce((
           SELECT json_object_agg(queue, n) FROM (
               SELECT queue, count(*) AS n FROM windlass.workers w, unnest(w.queues) AS queue
               WHERE w.lost_at IS NULL AND w.lease_until > windlass.clock() GROUP BY queue
           ) s
       ), '{}') AS served,
       (SELECT count(*) FROM windlass.workers
        WHERE lost_at > windlass.clock() - make_interval(secs => $1)) AS lost,
       (SELECT max(lost_at) FROM windlass.workers) AS last_lost,
       windlass.clock() AS now

-- name: overview_error
SELECT recipe, state, error ->> 'code' AS code, error ->> 'step' AS step, left(error ->> 'message', 200) AS message
FROM windlass.jobs WHERE id = $1

-- name: overview_breakers
SELECT name, opened_at, error FROM windlass.providers WHERE opened_at IS NOT NULL ORDER BY name LIMIT $1
