-- Dead letters: failed and denied jobs that were neither run again nor discarded.

-- name: dead_letters
-- The dead letters among the newest $1 failed jobs of all callers (by jobs_failed). A child job belongs to its parent,
-- unless a handler spawned it. A job that was run again, discarded or deleted is no dead letter. Each job is looked up
-- in `redriven` separately, because a join could read the whole table.
SELECT j.id, j.recipe, j.plan, j.trouble AS state, j.finished_at, e.code, left(e.message, $2) AS message, e.step
FROM (
    SELECT id, recipe, plan, finished_at, error, deleted_at, parent_job, parent_attempt, trouble FROM windlass.jobs
    WHERE trouble IN ('FAILED', 'TIMEOUT', 'DENIED') ORDER BY id DESC LIMIT $1
) j
CROSS JOIN LATERAL json_to_record(coalesce(j.error, '{}')) AS e (code text, message text, step text)
WHERE j.deleted_at IS NULL AND (j.parent_job IS NULL OR j.parent_attempt = 0)
  AND (SELECT r.job_id FROM windlass.redriven r WHERE r.job_id = j.id) IS NULL
ORDER BY j.id DESC

-- name: dead_letters_caller
-- The dead letters of one caller, among its newest $1 jobs that ended in any state but COMPLETED (jobs_caller_trouble).
SELECT j.id, j.recipe, j.plan, j.trouble AS state, j.finished_at, e.code, left(e.message, $2) AS message, e.step
FROM (
    SELECT id, recipe, plan, finished_at, error, deleted_at, parent_job, parent_attempt, trouble FROM windlass.jobs
    WHERE caller = $3 AND trouble IS NOT NULL ORDER BY id DESC LIMIT $1
) j
CROSS JOIN LATERAL json_to_record(coalesce(j.error, '{}')) AS e (code text, message text, step text)
WHERE j.trouble IN ('FAILED', 'TIMEOUT', 'DENIED') AND j.deleted_at IS NULL AND (j.parent_job IS NULL OR j.parent_attempt = 0)
  AND (SELECT r.job_id FROM windlass.redriven r WHERE r.job_id = j.id) IS NULL
ORDER BY j.id DESC

-- fragment: dead_letters_counted
SELECT count(*) AS looked_at, count(*) FILTER (WHERE is_dead) AS count,
       (SELECT id FROM looked WHERE is_dead ORDER BY id DESC LIMIT 1) AS newest
FROM looked

-- name: dead_letters_count
-- The number of dead letters, the number of jobs that were read, and the newest dead letter.
WITH looked AS MATERIALIZED (
    SELECT id, deleted_at IS NULL AND (parent_job IS NULL OR parent_attempt = 0)
               AND (SELECT r.job_id FROM windlass.redriven r WHERE r.job_id = j.id) IS NULL AS is_dead
    FROM (
        SELECT id, deleted_at, parent_job, parent_attempt FROM windlass.jobs
        WHERE trouble IN ('FAILED', 'TIMEOUT', 'DENIED') ORDER BY id DESC LIMIT $1
    ) j
)
-- include: dead_letters_counted

-- name: dead_letters_count_caller
WITH looked AS MATERIALIZED (
    SELECT id, trouble IN ('FAILED', 'TIMEOUT', 'DENIED') AND deleted_at IS NULL AND (parent_job IS NULL OR parent_attempt = 0)
               AND (SELECT r.job_id FROM windlass.redriven r WHERE r.job_id = j.id) IS NULL AS is_dead
    FROM (
        SELECT id, deleted_at, parent_job, parent_attempt, trouble FROM windlass.jobs
        WHERE caller = $2 AND trouble IS NOT NULL ORDER BY id DESC LIMIT $1
    ) j
)
-- include: dead_letters_counted

-- name: dead_letter_discard
-- Discards the jobs that were not run again or discarded meanwhile.
INSERT INTO windlass.redriven (job_id, at, by, reason)
SELECT id, windlass.clock(), $2, $3 FROM unnest($1::uuid[]) AS d (id)
ON CONFLICT DO NOTHING

-- name: dead_letter_discarded
SELECT job_id FROM windlass.redriven WHERE job_id = ANY ($1::uuid[]) AND new_job IS NULL
