-- Pages of jobs, newest first. These statements only read.
--
-- Plans are generic, so an optional condition (`:recipe IS NULL OR …`) can never drive an index. Each way of finding
-- jobs is therefore a separate statement, and optional conditions filter the rows that it finds. A statement reads at
-- most `:looks` rows. A page with fewer than `:wanted` rows returns as `reach` the last row that it read, if more rows
-- may follow. It does so in the same snapshot, because a job pruned meanwhile would shift the count.
--
-- Pages go from below the id `:before` down to `:floor`, and have `:wanted` rows. `:'label'` is the name of an indexed
-- label: `store/labels.py` substitutes it, and in psql \set does.

-- fragment: list_page (found)
-- A page of the jobs that match `found`. The comment at each include names the index that finds them in order of id.
WITH page AS MATERIALIZED (
    SELECT * FROM (
        SELECT * FROM windlass.jobs j
        WHERE :found AND j.id < :before AND j.id >= :floor
        ORDER BY j.id DESC LIMIT :looks
    ) j
    WHERE
        -- include: list_filter
    ORDER BY j.id DESC LIMIT :wanted
)
SELECT r.reach,
       -- include: list_columns
FROM (
    SELECT CASE WHEN (SELECT count(*) FROM page) < :wanted THEN (
        SELECT j.id FROM windlass.jobs j
        WHERE :found AND j.id < :before AND j.id >= :floor
        ORDER BY j.id DESC OFFSET :looks - 1 LIMIT 1
    ) END AS reach
) r
LEFT JOIN page j ON true
-- include: list_recipe_version
ORDER BY j.id DESC

-- fragment: list_filter
-- The optional conditions.
(:states::text[] IS NULL OR j.state = ANY(:states))
AND (:recipe::text IS NULL OR j.recipe = :recipe)
AND (:labels::jsonb IS NULL OR j.labels @> :labels)
AND (:failed_step::text IS NULL OR j.error ->> 'step' = :failed_step)
AND (:since::timestamptz IS NULL OR j.created_at >= :since)
AND (:until::timestamptz IS NULL OR j.created_at < :until)
AND (:with_deleted OR j.deleted_at IS NULL)

-- fragment: list_columns
j.id, j.recipe, v.version AS recipe_version, j.plan, j.state, j.caller, j.priority, j.is_paused,
j.event_seq, j.version, j.steps_total, j.steps_open, j.steps_failed, NULL::json AS input, j.error, j.labels,
j.progress, j.idempotency_key, j.correlation_id, j.parent_job, j.parent_no, j.retry_of, j.created_at,
j.started_at, j.finished_at, j.deadline_at, j.expires_at, j.deleted_at,
-- include: read_job_age

-- fragment: list_recipe_version
LEFT JOIN LATERAL (
    SELECT x.version FROM windlass.recipes x WHERE x.name = j.recipe AND x.plan = j.plan ORDER BY x.version DESC LIMIT 1
) v ON true

-- name: list_caller
-- By jobs_caller.
-- include: list_page (found: j.caller = :caller)

-- name: list_caller_trouble
-- By jobs_caller_trouble: a caller's jobs that ended in a state other than COMPLETED.
-- include: list_page (found: j.caller = :caller AND j.trouble IS NOT NULL)

-- name: list_caller_label
-- By jobs_label_NAME.
-- include: list_page (found: j.caller = :caller AND j.labels ? :'label' AND j.labels ->> :'label' = :value)

-- name: list_all_label
-- By jobs_all_label_NAME.
-- include: list_page (found: j.labels ? :'label' AND j.labels -> :'label' = to_jsonb(:value::text))

-- name: list_caller_failed_step
-- By jobs_failed_step.
-- include: list_page (found: j.caller = :caller AND j.trouble IN ('FAILED', 'TIMEOUT') AND j.error ->> 'step' = :failed_step)

-- name: list_all
-- By jobs_pkey: jobs of all callers.
-- include: list_page (found: true)

-- name: list_all_failed
-- By jobs_failed: jobs of all callers that failed or timed out.
-- include: list_page (found: j.trouble IN ('FAILED', 'TIMEOUT'))

-- name: list_all_trouble
-- By jobs_trouble: jobs of all callers that ended in one given state other than COMPLETED.
-- include: list_page (found: j.trouble = :state)

-- name: list_ids
-- By jobs_pkey: the matching jobs among these ids, of one caller or of all. The ids make `reach` unnecessary.
SELECT NULL::uuid AS reach,
       -- include: list_columns
FROM windlass.jobs j
-- include: list_recipe_version
WHERE j.id = ANY (:ids::uuid[]) AND j.id < :before AND j.id >= :floor
  AND (:caller::text IS NULL OR j.caller = :caller)
  AND
  -- include: list_filter
ORDER BY j.id DESC LIMIT least(:looks::int, :wanted::int)

-- name: list_retried
-- Returns the jobs of this list that were run again or discarded.
SELECT job_id FROM windlass.redriven WHERE job_id = ANY ($1::uuid[])

-- name: list_running
-- The number of running attempts of these jobs, among the $2 running attempts that are read (by steps_running).
SELECT count(*) FROM (SELECT job_id FROM windlass.steps WHERE state = 'RUNNING' LIMIT $2) s
WHERE s.job_id = ANY ($1::uuid[])
