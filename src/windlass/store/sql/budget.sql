-- The costs of attempts, and the budgets.

-- name: cost_put
-- Adds up several reports of one attempt. An estimate ($9) counts only if no cost was reported before.
WITH d AS MATERIALIZED (
    SELECT u.*, j.recipe, j.caller, j.jobs
    FROM unnest($1::uuid[], $2::int[], $3::int[], $4::text[], $5::numeric[], $6::bigint[], $7::bigint[], $8::float8[],
                $9::bool[])
        AS u (job_id, no, attempt, provider, amount, tokens_in, tokens_out, seconds, is_guess)
    CROSS JOIN LATERAL (
        SELECT j.recipe, j.caller,
               CASE WHEN j.parent_job IS NULL THEN ARRAY[j.id::text] ELSE windlass.lineage(j.id) END AS jobs
        FROM windlass.jobs j WHERE j.id = u.job_id LIMIT 1
    ) AS j
    WHERE NOT (u.is_guess AND EXISTS (
        SELECT FROM windlass.costs c WHERE c.job_id = u.job_id AND c.no = u.no AND c.attempt = u.attempt
    ))
), put AS (
    INSERT INTO windlass.costs AS c (job_id, no, attempt, provider, amount, tokens_in, tokens_out, seconds, at)
    SELECT job_id, no, attempt, provider, amount, tokens_in, tokens_out, seconds, windlass.clock() FROM d
    ON CONFLICT (job_id, no, attempt) DO UPDATE
    SET amount = c.amount + excluded.amount,
        tokens_in = c.tokens_in + excluded.tokens_in,
        tokens_out = c.tokens_out + excluded.tokens_out,
        seconds = c.seconds + excluded.seconds,
        provider = coalesce(c.provider, excluded.provider)
)
SELECT job_id, no, amount, recipe, caller, jobs FROM d

-- name: cost_list
SELECT c.no, s.node, s.index, c.attempt, c.provider, c.amount, c.tokens_in, c.tokens_out, c.seconds, c.at
FROM windlass.costs c JOIN windlass.steps s ON s.job_id = c.job_id AND s.no = c.no
WHERE c.job_id = $1 ORDER BY c.no, c.attempt

-- name: budget_lock
-- Locks the existing budgets in the given order. Every caller uses the same order.
SELECT b.*
FROM unnest($1::text[], $2::text[]) AS d (scope, name)
CROSS JOIN LATERAL (
    SELECT b.scope, b.name, b.most, b.spent, b.reserved FROM windlass.budgets b
    WHERE b.scope = d.scope AND b.name = d.name LIMIT 1 FOR UPDATE
) AS b

-- name: budget_add
-- Adds $3 to the spent amounts and $4 to the reserved amounts. If a budget gains room, the granter must check the steps
-- that wait for it. All rows exist and are locked.
WITH d AS MATERIALIZED (
    SELECT * FROM unnest($1::text[], $2::text[], $3::numeric[], $4::numeric[]) AS d (scope, name, spent, reserved)
), added AS (
    INSERT INTO windlass.budgets AS b (scope, name, most, spent, reserved, updated_at)
    SELECT scope, name, 0, spent, reserved, windlass.clock() FROM d
    ON CONFLICT (scope, name) DO UPDATE
    SET spent = b.spent + excluded.spent, reserved = b.reserved + excluded.reserved, updated_at = excluded.updated_at
), change AS (
    INSERT INTO windlass.slot_changes (kind, name) SELECT scope, name FROM d WHERE spent + reserved < 0 RETURNING kind
)
SELECT true FROM change LIMIT 1

-- name: budget_held
-- The amounts that are already reserved for a new budget. It waits for transactions that give amounts back; later ones
-- find the new budget.
SELECT cost FROM windlass.slots
WHERE state = 'HELD' AND cost IS NOT NULL
  AND CASE $1 WHEN 'job' THEN $2 = ANY (jobs) WHEN 'recipe' THEN recipe = $2 ELSE caller = $2 END
ORDER BY job_id, no
FOR UPDATE

-- name: budget_jobs
-- A job and all jobs below it.
WITH RECURSIVE down (id) AS (
    SELECT j.id FROM windlass.jobs j WHERE j.id = $1
    UNION ALL
    SELECT j.id FROM down
    CROSS JOIN LATERAL (SELECT j.id FROM windlass.jobs j WHERE j.parent_job = down.id OFFSET 0) AS j
)
SELECT id FROM down

-- name: budget_spent
-- The cost of these jobs so far. For a recipe or a caller, only costs after the budget was set count.
SELECT coalesce(sum(amount), 0) FROM windlass.costs WHERE job_id = ANY($1::uuid[])

-- name: budget_set
INSERT INTO windlass.budgets AS b (scope, name, most, spent, reserved, updated_at)
VALUES ($1, $2, $3, $4, $5, windlass.clock())
ON CONFLICT (scope, name) DO UPDATE SET most = excluded.most, updated_at = excluded.updated_at
RETURNING scope, name, most, spent, reserved, updated_at

-- name: budget_get
SELECT scope, name, most, spent, reserved, updated_at FROM windlass.budgets WHERE scope = $1 AND name = $2

-- name: budget_list
SELECT scope, name, most, spent, reserved, updated_at FROM windlass.budgets
WHERE ($1::text IS NULL OR scope = $1) ORDER BY scope, name LIMIT $2

-- name: budget_remove
DELETE FROM windlass.budgets WHERE scope = $1 AND name = $2 RETURNING name
