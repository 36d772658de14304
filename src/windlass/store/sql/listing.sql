-- Pages of jobs, the newest first. Nothing here decides anything.
--
-- Plans are generic, so a condition that may be absent (`$1 IS NULL OR …`) can never drive an index: each way of finding
-- jobs is a statement of its own, and what may be absent is tested on the rows that it finds. At most $3 rows are
-- looked at. A page that comes out short tells as `reach` the last row it looked at, if there may be more behind it; it
-- does so in the same snapshot, as a job pruned meanwhile would shift the count.
--
-- $1 before which id · $2 down to which · $3 rows to look at · $4 rows wanted · $5 states · $6 recipe · $7 labels ·
-- $8 failed step · $9 since · $10 until · $11 with deleted ones · $12 the caller, the state, or the label's value ·
-- $13 the label's value. `:'label'` is the name of an indexed label: `store/labels.py` puts it in, psql does by \set.

-- name: list_caller
-- By jobs_caller.
WITH page AS MATERIALIZED (
    SELECT * FROM (
        SELECT * FROM windlass.jobs j
        WHERE j.caller = $12 AND j.id < $1 AND j.id >= $2
        ORDER BY j.id DESC LIMIT $3
    ) j
    WHERE ($5::text[] IS NULL OR j.state = ANY($5))
      AND ($6::text IS NULL OR j.recipe = $6)
      AND ($7::jsonb IS NULL OR j.labels @> $7)
      AND ($8::text IS NULL OR j.error ->> 'step' = $8)
      AND ($9::timestamptz IS NULL OR j.created_at >= $9)
      AND ($10::timestamptz IS NULL OR j.created_at < $10)
      AND ($11 OR j.deleted_at IS NULL)
    ORDER BY j.id DESC LIMIT $4
)
SELECT r.reach, j.id, j.recipe, v.version AS recipe_version, j.plan, j.state, j.caller, j.priority, j.is_paused,
       j.event_seq, j.version, j.steps_total, j.steps_open, j.steps_failed, NULL::json AS input, j.error, j.labels,
       j.progress, j.idempotency_key, j.correlation_id, j.parent_job, j.parent_no, j.retry_of, j.created_at,
       j.started_at, j.finished_at, j.deadline_at, j.expires_at, j.deleted_at
FROM (
    SELECT CASE WHEN (SELECT count(*) FROM page) < $4 THEN (
        SELECT j.id FROM windlass.jobs j
        WHERE j.caller = $12 AND j.id < $1 AND j.id >= $2
        ORDER BY j.id DESC OFFSET $3 - 1 LIMIT 1
    ) END AS reach
) r
LEFT JOIN page j ON true
LEFT JOIN LATERAL (
    SELECT x.version FROM windlass.recipes x WHERE x.name = j.recipe AND x.plan = j.plan ORDER BY x.version DESC LIMIT 1
) v ON true
ORDER BY j.id DESC

-- name: list_caller_trouble
-- By jobs_caller_trouble: a caller's jobs that ended in another way than COMPLETED.
WITH page AS MATERIALIZED (
    SELECT * FROM (
        SELECT * FROM windlass.jobs j
        WHERE j.caller = $12 AND j.trouble IS NOT NULL AND j.id < $1 AND j.id >= $2
        ORDER BY j.id DESC LIMIT $3
    ) j
    WHERE ($5::text[] IS NULL OR j.state = ANY($5))
      AND ($6::text IS NULL OR j.recipe = $6)
      AND ($7::jsonb IS NULL OR j.labels @> $7)
      AND ($8::text IS NULL OR j.error ->> 'step' = $8)
      AND ($9::timestamptz IS NULL OR j.created_at >= $9)
      AND ($10::timestamptz IS NULL OR j.created_at < $10)
      AND ($11 OR j.deleted_at IS NULL)
    ORDER BY j.id DESC LIMIT $4
)
SELECT r.reach, j.id, j.recipe, v.version AS recipe_version, j.plan, j.state, j.caller, j.priority, j.is_paused,
       j.event_seq, j.version, j.steps_total, j.steps_open, j.steps_failed, NULL::json AS input, j.error, j.labels,
       j.progress, j.idempotency_key, j.correlation_id, j.parent_job, j.parent_no, j.retry_of, j.created_at,
       j.started_at, j.finished_at, j.deadline_at, j.expires_at, j.deleted_at
FROM (
    SELECT CASE WHEN (SELECT count(*) FROM page) < $4 THEN (
        SELECT j.id FROM windlass.jobs j
        WHERE j.caller = $12 AND j.trouble IS NOT NULL AND j.id < $1 AND j.id >= $2
        ORDER BY j.id DESC OFFSET $3 - 1 LIMIT 1
    ) END AS reach
) r
LEFT JOIN page j ON true
LEFT JOIN LATERAL (
    SELECT x.version FROM windlass.recipes x WHERE x.name = j.recipe AND x.plan = j.plan ORDER BY x.version DESC LIMIT 1
) v ON true
ORDER BY j.id DESC

-- name: list_caller_label
-- By jobs_label_NAME.
WITH page AS MATERIALIZED (
    SELECT * FROM (
        SELECT * FROM windlass.jobs j
        WHERE j.caller = $12 AND j.labels ? :'label' AND j.labels ->> :'label' = $13 AND j.id < $1 AND j.id >= $2
        ORDER BY j.id DESC LIMIT $3
    ) j
    WHERE ($5::text[] IS NULL OR j.state = ANY($5))
      AND ($6::text IS NULL OR j.recipe = $6)
      AND ($7::jsonb IS NULL OR j.labels @> $7)
      AND ($8::text IS NULL OR j.error ->> 'step' = $8)
      AND ($9::timestamptz IS NULL OR j.created_at >= $9)
      AND ($10::timestamptz IS NULL OR j.created_at < $10)
      AND ($11 OR j.deleted_at IS NULL)
    ORDER BY j.id DESC LIMIT $4
)
SELECT r.reach, j.id, j.recipe, v.version AS recipe_version, j.plan, j.state, j.caller, j.priority, j.is_paused,
       j.event_seq, j.version, j.steps_total, j.steps_open, j.steps_failed, NULL::json AS input, j.error, j.labels,
       j.progress, j.idempotency_key, j.correlation_id, j.parent_job, j.parent_no, j.retry_of, j.created_at,
       j.started_at, j.finished_at, j.deadline_at, j.expires_at, j.deleted_at
FROM (
    SELECT CASE WHEN (SELECT count(*) FROM page) < $4 THEN (
        SELECT j.id FROM windlass.jobs j
        WHERE j.caller = $12 AND j.labels ? :'label' AND j.labels ->> :'label' = $13 AND j.id < $1 AND j.id >= $2
        ORDER BY j.id DESC OFFSET $3 - 1 LIMIT 1
    ) END AS reach
) r
LEFT JOIN page j ON true
LEFT JOIN LATERAL (
    SELECT x.version FROM windlass.recipes x WHERE x.name = j.recipe AND x.plan = j.plan ORDER BY x.version DESC LIMIT 1
) v ON true
ORDER BY j.id DESC

-- name: list_all_label
-- By jobs_all_label_NAME.
WITH page AS MATERIALIZED (
    SELECT * FROM (
        SELECT * FROM windlass.jobs j
        WHERE j.labels ? :'label' AND j.labels -> :'label' = to_jsonb($12::text) AND j.id < $1 AND j.id >= $2
        ORDER BY j.id DESC LIMIT $3
    ) j
    WHERE ($5::text[] IS NULL OR j.state = ANY($5))
      AND ($6::text IS NULL OR j.recipe = $6)
      AND ($7::jsonb IS NULL OR j.labels @> $7)
      AND ($8::text IS NULL OR j.error ->> 'step' = $8)
      AND ($9::timestamptz IS NULL OR j.created_at >= $9)
      AND ($10::timestamptz IS NULL OR j.created_at < $10)
      AND ($11 OR j.deleted_at IS NULL)
    ORDER BY j.id DESC LIMIT $4
)
SELECT r.reach, j.id, j.recipe, v.version AS recipe_version, j.plan, j.state, j.caller, j.priority, j.is_paused,
       j.event_seq, j.version, j.steps_total, j.steps_open, j.steps_failed, NULL::json AS input, j.error, j.labels,
       j.progress, j.idempotency_key, j.correlation_id, j.parent_job, j.parent_no, j.retry_of, j.created_at,
       j.started_at, j.finished_at, j.deadline_at, j.expires_at, j.deleted_at
FROM (
    SELECT CASE WHEN (SELECT count(*) FROM page) < $4 THEN (
        SELECT j.id FROM windlass.jobs j
        WHERE j.labels ? :'label' AND j.labels -> :'label' = to_jsonb($12::text) AND j.id < $1 AND j.id >= $2
        ORDER BY j.id DESC OFFSET $3 - 1 LIMIT 1
    ) END AS reach
) r
LEFT JOIN page j ON true
LEFT JOIN LATERAL (
    SELECT x.version FROM windlass.recipes x WHERE x.name = j.recipe AND x.plan = j.plan ORDER BY x.version DESC LIMIT 1
) v ON true
ORDER BY j.id DESC

-- name: list_caller_failed_step
-- By jobs_failed_step.
WITH page AS MATERIALIZED (
    SELECT * FROM (
        SELECT * FROM windlass.jobs j
        WHERE j.caller = $12 AND j.trouble = 'FAILED' AND j.error ->> 'step' = $8 AND j.id < $1 AND j.id >= $2
        ORDER BY j.id DESC LIMIT $3
    ) j
    WHERE ($5::text[] IS NULL OR j.state = ANY($5))
      AND ($6::text IS NULL OR j.recipe = $6)
      AND ($7::jsonb IS NULL OR j.labels @> $7)
      AND ($8::text IS NULL OR j.error ->> 'step' = $8)
      AND ($9::timestamptz IS NULL OR j.created_at >= $9)
      AND ($10::timestamptz IS NULL OR j.created_at < $10)
      AND ($11 OR j.deleted_at IS NULL)
    ORDER BY j.id DESC LIMIT $4
)
SELECT r.reach, j.id, j.recipe, v.version AS recipe_version, j.plan, j.state, j.caller, j.priority, j.is_paused,
       j.event_seq, j.version, j.steps_total, j.steps_open, j.steps_failed, NULL::json AS input, j.error, j.labels,
       j.progress, j.idempotency_key, j.correlation_id, j.parent_job, j.parent_no, j.retry_of, j.created_at,
       j.started_at, j.finished_at, j.deadline_at, j.expires_at, j.deleted_at
FROM (
    SELECT CASE WHEN (SELECT count(*) FROM page) < $4 THEN (
        SELECT j.id FROM windlass.jobs j
        WHERE j.caller = $12 AND j.trouble = 'FAILED' AND j.error ->> 'step' = $8 AND j.id < $1 AND j.id >= $2
        ORDER BY j.id DESC OFFSET $3 - 1 LIMIT 1
    ) END AS reach
) r
LEFT JOIN page j ON true
LEFT JOIN LATERAL (
    SELECT x.version FROM windlass.recipes x WHERE x.name = j.recipe AND x.plan = j.plan ORDER BY x.version DESC LIMIT 1
) v ON true
ORDER BY j.id DESC

-- name: list_all
-- By jobs_pkey: jobs of all callers.
WITH page AS MATERIALIZED (
    SELECT * FROM (
        SELECT * FROM windlass.jobs j
        WHERE j.id < $1 AND j.id >= $2
        ORDER BY j.id DESC LIMIT $3
    ) j
    WHERE ($5::text[] IS NULL OR j.state = ANY($5))
      AND ($6::text IS NULL OR j.recipe = $6)
      AND ($7::jsonb IS NULL OR j.labels @> $7)
      AND ($8::text IS NULL OR j.error ->> 'step' = $8)
      AND ($9::timestamptz IS NULL OR j.created_at >= $9)
      AND ($10::timestamptz IS NULL OR j.created_at < $10)
      AND ($11 OR j.deleted_at IS NULL)
    ORDER BY j.id DESC LIMIT $4
)
SELECT r.reach, j.id, j.recipe, v.version AS recipe_version, j.plan, j.state, j.caller, j.priority, j.is_paused,
       j.event_seq, j.version, j.steps_total, j.steps_open, j.steps_failed, NULL::json AS input, j.error, j.labels,
       j.progress, j.idempotency_key, j.correlation_id, j.parent_job, j.parent_no, j.retry_of, j.created_at,
       j.started_at, j.finished_at, j.deadline_at, j.expires_at, j.deleted_at
FROM (
    SELECT CASE WHEN (SELECT count(*) FROM page) < $4 THEN (
        SELECT j.id FROM windlass.jobs j
        WHERE j.id < $1 AND j.id >= $2
        ORDER BY j.id DESC OFFSET $3 - 1 LIMIT 1
    ) END AS reach
) r
LEFT JOIN page j ON true
LEFT JOIN LATERAL (
    SELECT x.version FROM windlass.recipes x WHERE x.name = j.recipe AND x.plan = j.plan ORDER BY x.version DESC LIMIT 1
) v ON true
ORDER BY j.id DESC

-- name: list_all_trouble
-- By jobs_trouble: jobs of all callers that ended in one such state.
WITH page AS MATERIALIZED (
    SELECT * FROM (
        SELECT * FROM windlass.jobs j
        WHERE j.trouble = $12 AND j.id < $1 AND j.id >= $2
        ORDER BY j.id DESC LIMIT $3
    ) j
    WHERE ($5::text[] IS NULL OR j.state = ANY($5))
      AND ($6::text IS NULL OR j.recipe = $6)
      AND ($7::jsonb IS NULL OR j.labels @> $7)
      AND ($8::text IS NULL OR j.error ->> 'step' = $8)
      AND ($9::timestamptz IS NULL OR j.created_at >= $9)
      AND ($10::timestamptz IS NULL OR j.created_at < $10)
      AND ($11 OR j.deleted_at IS NULL)
    ORDER BY j.id DESC LIMIT $4
)
SELECT r.reach, j.id, j.recipe, v.version AS recipe_version, j.plan, j.state, j.caller, j.priority, j.is_paused,
       j.event_seq, j.version, j.steps_total, j.steps_open, j.steps_failed, NULL::json AS input, j.error, j.labels,
       j.progress, j.idempotency_key, j.correlation_id, j.parent_job, j.parent_no, j.retry_of, j.created_at,
       j.started_at, j.finished_at, j.deadline_at, j.expires_at, j.deleted_at
FROM (
    SELECT CASE WHEN (SELECT count(*) FROM page) < $4 THEN (
        SELECT j.id FROM windlass.jobs j
        WHERE j.trouble = $12 AND j.id < $1 AND j.id >= $2
        ORDER BY j.id DESC OFFSET $3 - 1 LIMIT 1
    ) END AS reach
) r
LEFT JOIN page j ON true
LEFT JOIN LATERAL (
    SELECT x.version FROM windlass.recipes x WHERE x.name = j.recipe AND x.plan = j.plan ORDER BY x.version DESC LIMIT 1
) v ON true
ORDER BY j.id DESC

-- name: list_ids
-- By jobs_pkey: of these jobs ($12) those that match, of one caller ($13) or of all. `reach` is not needed: the ids say it.
SELECT NULL::uuid AS reach, j.id, j.recipe, v.version AS recipe_version, j.plan, j.state, j.caller, j.priority,
       j.is_paused, j.event_seq, j.version, j.steps_total, j.steps_open, j.steps_failed, NULL::json AS input, j.error,
       j.labels, j.progress, j.idempotency_key, j.correlation_id, j.parent_job, j.parent_no, j.retry_of, j.created_at,
       j.started_at, j.finished_at, j.deadline_at, j.expires_at, j.deleted_at
FROM windlass.jobs j
LEFT JOIN LATERAL (
    SELECT x.version FROM windlass.recipes x WHERE x.name = j.recipe AND x.plan = j.plan ORDER BY x.version DESC LIMIT 1
) v ON true
WHERE j.id = ANY ($12::uuid[]) AND j.id < $1 AND j.id >= $2
  AND ($13::text IS NULL OR j.caller = $13)
  AND ($5::text[] IS NULL OR j.state = ANY($5))
  AND ($6::text IS NULL OR j.recipe = $6)
  AND ($7::jsonb IS NULL OR j.labels @> $7)
  AND ($8::text IS NULL OR j.error ->> 'step' = $8)
  AND ($9::timestamptz IS NULL OR j.created_at >= $9)
  AND ($10::timestamptz IS NULL OR j.created_at < $10)
  AND ($11 OR j.deleted_at IS NULL)
ORDER BY j.id DESC LIMIT least($3::int, $4::int)

-- name: list_retried
-- Which of these jobs somebody ran again, or discarded.
SELECT job_id FROM windlass.redriven WHERE job_id = ANY ($1::uuid[])

-- name: list_running
-- How many attempts of these jobs are under way, among the $2 that are looked at (by steps_running).
SELECT count(*) FROM (SELECT job_id FROM windlass.steps WHERE state = 'RUNNING' LIMIT $2) s
WHERE s.job_id = ANY ($1::uuid[])
