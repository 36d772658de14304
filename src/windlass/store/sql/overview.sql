-- What a person looks at first, and the failures that nobody has dealt with. Each looks at a stated number of rows at
-- most, by an index that is there for other reasons.

-- name: dead_letters
-- The newest $1 failed jobs of all callers (by jobs_trouble). A part of another job is that job's affair, unless a
-- handler started it; one that was run again, discarded or deleted is nobody's any more. Each is looked up in `redriven`
-- by itself: a join could read all of that.
SELECT j.id, j.recipe, j.plan, j.trouble AS state, j.finished_at, e.code, left(e.message, $2) AS message, e.step
FROM (
    SELECT id, recipe, plan, finished_at, error, deleted_at, parent_job, parent_attempt, trouble FROM windlass.jobs
    WHERE trouble = 'FAILED' ORDER BY id DESC LIMIT $1
) j
CROSS JOIN LATERAL json_to_record(coalesce(j.error, '{}')) AS e (code text, message text, step text)
WHERE j.deleted_at IS NULL AND (j.parent_job IS NULL OR j.parent_attempt = 0)
  AND (SELECT r.job_id FROM windlass.redriven r WHERE r.job_id = j.id) IS NULL
ORDER BY j.id DESC

-- name: dead_letters_caller
-- The same of one caller: among the newest $1 that ended badly in any way (by jobs_caller_trouble).
SELECT j.id, j.recipe, j.plan, j.trouble AS state, j.finished_at, e.code, left(e.message, $2) AS message, e.step
FROM (
    SELECT id, recipe, plan, finished_at, error, deleted_at, parent_job, parent_attempt, trouble FROM windlass.jobs
    WHERE caller = $3 AND trouble IS NOT NULL ORDER BY id DESC LIMIT $1
) j
CROSS JOIN LATERAL json_to_record(coalesce(j.error, '{}')) AS e (code text, message text, step text)
WHERE j.trouble = 'FAILED' AND j.deleted_at IS NULL AND (j.parent_job IS NULL OR j.parent_attempt = 0)
  AND (SELECT r.job_id FROM windlass.redriven r WHERE r.job_id = j.id) IS NULL
ORDER BY j.id DESC

-- name: dead_letters_count
-- How many of them there are, among how many that were looked at, and the newest.
WITH looked AS MATERIALIZED (
    SELECT id, deleted_at IS NULL AND (parent_job IS NULL OR parent_attempt = 0)
               AND (SELECT r.job_id FROM windlass.redriven r WHERE r.job_id = j.id) IS NULL AS is_dead
    FROM (
        SELECT id, deleted_at, parent_job, parent_attempt FROM windlass.jobs
        WHERE trouble = 'FAILED' ORDER BY id DESC LIMIT $1
    ) j
)
SELECT count(*) AS looked_at, count(*) FILTER (WHERE is_dead) AS count,
       (SELECT id FROM looked WHERE is_dead ORDER BY id DESC LIMIT 1) AS newest
FROM looked

-- name: dead_letters_count_caller
WITH looked AS MATERIALIZED (
    SELECT id, trouble = 'FAILED' AND deleted_at IS NULL AND (parent_job IS NULL OR parent_attempt = 0)
               AND (SELECT r.job_id FROM windlass.redriven r WHERE r.job_id = j.id) IS NULL AS is_dead
    FROM (
        SELECT id, deleted_at, parent_job, parent_attempt, trouble FROM windlass.jobs
        WHERE caller = $2 AND trouble IS NOT NULL ORDER BY id DESC LIMIT $1
    ) j
)
SELECT count(*) AS looked_at, count(*) FILTER (WHERE is_dead) AS count,
       (SELECT id FROM looked WHERE is_dead ORDER BY id DESC LIMIT 1) AS newest
FROM looked

-- name: dead_letter_discard
-- Those that nobody has dealt with meanwhile.
INSERT INTO windlass.redriven (job_id, at, by, reason)
SELECT id, windlass.clock(), $2, $3 FROM unnest($1::uuid[]) AS d (id)
ON CONFLICT DO NOTHING

-- name: dead_letter_discarded
SELECT job_id FROM windlass.redriven WHERE job_id = ANY ($1::uuid[]) AND new_job IS NULL

-- name: plan_versions
-- The newest version of a recipe that each of these plans is.
SELECT r.name, r.plan, max(r.version) AS version FROM windlass.recipes r
JOIN (SELECT DISTINCT * FROM unnest($1::text[], $2::text[]) AS d (name, plan)) d ON d.name = r.name AND d.plan = r.plan
GROUP BY r.name, r.plan

-- name: overview_minutes
-- How jobs ended in the last $1 minutes, by the minute; $2 rows at most are looked at, the newest. That somebody
-- cancelled a job is no failure.
SELECT minute, coalesce(sum(count) FILTER (WHERE state = 'COMPLETED'), 0)::int AS completed,
       coalesce(sum(count) FILTER (WHERE state NOT IN ('COMPLETED', 'CANCELLED')), 0)::int AS failed, count(*) AS rows
FROM (
    SELECT minute, state, count FROM windlass.minutes
    WHERE minute > windlass.clock() - make_interval(mins => $1) ORDER BY minute DESC LIMIT $2
) m
GROUP BY minute

-- name: overview_recipes
-- The same by recipe and length, and of those the ones of the last $3 minutes.
SELECT recipe, state, length, sum(count)::int AS count,
       coalesce(sum(count) FILTER (WHERE minute > windlass.clock() - make_interval(mins => $3)), 0)::int AS late
FROM (
    SELECT minute, recipe, state, length, count FROM windlass.minutes
    WHERE minute > windlass.clock() - make_interval(mins => $1) AND state <> 'CANCELLED'
    ORDER BY minute DESC LIMIT $2
) m
GROUP BY recipe, state, length

-- name: overview_ended_caller
-- The same of one caller, from the newest $2 of its jobs (by jobs_caller).
SELECT date_trunc('minute', j.finished_at) AS minute, j.recipe, j.state,
       extract(epoch FROM j.finished_at - j.created_at)::float8 AS seconds
FROM (
    SELECT recipe, state, created_at, finished_at FROM windlass.jobs WHERE caller = $3 ORDER BY id DESC LIMIT $2
) j
WHERE j.finished_at > windlass.clock() - make_interval(mins => $1)

-- name: overview_running
-- Attempts under way (by steps_running), $1 at most.
SELECT s.queue, count(*) AS steps FROM (SELECT queue FROM windlass.steps WHERE state = 'RUNNING' LIMIT $1) s
GROUP BY s.queue

-- name: overview_waits
-- Jobs that wait for an event, by its name; $1 waits at most are looked at, the newest. A paused job asks for nothing.
SELECT w.name, count(DISTINCT w.job_id) AS jobs, min(w.job_id::text)::uuid AS oldest
FROM (SELECT job_id, name FROM windlass.waits ORDER BY job_id DESC, no DESC LIMIT $1) w
JOIN windlass.jobs j ON j.id = w.job_id AND j.due_at IS NOT NULL AND NOT j.is_paused
                    AND ($2::text IS NULL OR j.caller = $2)
GROUP BY w.name ORDER BY jobs DESC, w.name

-- name: overview_short
-- Steps that wait for money, by the budget that is used up; $1 at most are looked at (by slots_short).
SELECT k.behind, count(*) AS steps, count(DISTINCT k.job_id) AS jobs, min(k.job_id::text)::uuid AS oldest
FROM (
    SELECT job_id, behind FROM windlass.slots
    WHERE state = 'WAITING' AND behind <> 'key' AND ($2::text IS NULL OR caller = $2) LIMIT $1
) k
JOIN windlass.jobs j ON j.id = k.job_id AND j.due_at IS NOT NULL AND NOT j.is_paused
GROUP BY k.behind ORDER BY steps DESC, k.behind

-- name: overview_workers
-- Which queues are served by how many live workers, and how many workers were lost lately.
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

-- name: recent_inputs
-- What a recipe was given lately, each once: of the newest $2 jobs of all callers, as far as it is small.
SELECT j.id, j.created_at, j.input FROM (
    SELECT DISTINCT ON (md5(j.input::text)) j.id, j.created_at, j.input FROM (
        SELECT j.id, j.created_at, j.input FROM (
            SELECT id, created_at, input, recipe, deleted_at FROM windlass.jobs ORDER BY id DESC LIMIT $2
        ) j
        WHERE j.recipe = $1 AND j.deleted_at IS NULL AND pg_column_size(j.input) <= $3
        ORDER BY j.id DESC LIMIT $4
    ) j
    ORDER BY md5(j.input::text), j.id DESC
) j
ORDER BY j.id DESC LIMIT $5

-- name: recent_inputs_caller
-- The same of one caller (by jobs_caller).
SELECT j.id, j.created_at, j.input FROM (
    SELECT DISTINCT ON (md5(j.input::text)) j.id, j.created_at, j.input FROM (
        SELECT j.id, j.created_at, j.input FROM (
            SELECT id, created_at, input, recipe, deleted_at FROM windlass.jobs
            WHERE caller = $6 ORDER BY id DESC LIMIT $2
        ) j
        WHERE j.recipe = $1 AND j.deleted_at IS NULL AND pg_column_size(j.input) <= $3
        ORDER BY j.id DESC LIMIT $4
    ) j
    ORDER BY md5(j.input::text), j.id DESC
) j
ORDER BY j.id DESC LIMIT $5
