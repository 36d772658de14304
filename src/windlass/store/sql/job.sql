-- Submitting jobs, and the plans and recipes that they are made from.

-- name: plan_get
SELECT body FROM windlass.plans WHERE hash = $1

-- name: plan_put
INSERT INTO windlass.plans (hash, body) VALUES ($1, $2) ON CONFLICT DO NOTHING

-- name: recipe_put
-- A new version, unless this plan is a version already. An old worker that restarts must not put its plan in force again.
INSERT INTO windlass.recipes (name, version, plan)
SELECT $1, coalesce(max(version), 0) + 1, $2
FROM windlass.recipes WHERE name = $1
HAVING NOT coalesce(bool_or(plan = $2), false)
ON CONFLICT DO NOTHING

-- name: recipe_put_newest
-- A new version, unless this plan is the newest already: a roll-back that was asked for.
INSERT INTO windlass.recipes (name, version, plan)
SELECT $1, coalesce(max(version), 0) + 1, $2
FROM windlass.recipes WHERE name = $1
HAVING (SELECT r.plan FROM windlass.recipes r WHERE r.name = $1 ORDER BY r.version DESC LIMIT 1) IS DISTINCT FROM $2
ON CONFLICT DO NOTHING

-- name: recipe_describe
-- All versions that are one plan have one description: the one given, else the one that is known already. Only a changed
-- description is written, so a worker that starts writes nothing.
UPDATE windlass.recipes r
SET description = d.description
FROM (
    SELECT coalesce(nullif($3::text, ''), max(description), '') AS description
    FROM windlass.recipes WHERE name = $1 AND plan = $2
) AS d
WHERE r.name = $1 AND r.plan = $2 AND r.description <> d.description

-- name: recipe_of_plan
SELECT max(version) FILTER (WHERE plan = $2) AS version, max(version) AS newest FROM windlass.recipes WHERE name = $1

-- name: recipe_latest
SELECT version, plan, description FROM windlass.recipes WHERE name = $1 ORDER BY version DESC LIMIT 1

-- name: recipe_version
SELECT version, plan, description FROM windlass.recipes WHERE name = $1 AND version = $2

-- name: recipe_list
SELECT DISTINCT ON (name) name, version, plan, created_at, description FROM windlass.recipes ORDER BY name, version DESC

-- name: recipe_versions
SELECT version, plan, created_at, description FROM windlass.recipes WHERE name = $1 ORDER BY version DESC

-- name: job_submit
-- Jobs are $1 to $20, $29 and $31 with their first events, steps $21 to $28 and $30. A job whose id or idempotency
-- key is already there is left out, with its steps: the caller reads it and compares. A column that can hold no NULL and
-- has one value throughout comes with that value once; $21 is NULL if every job has one step.
WITH job AS (
    INSERT INTO windlass.jobs
        (id, recipe, plan, state, caller, priority, event_seq, steps_total, steps_open, input, labels,
         idempotency_key, body_hash, correlation_id, parent_job, parent_no, parent_attempt, depth, retry_of,
         created_at, deadline_at, expires_at, due_at, is_ttl_default)
    SELECT d.id, d.recipe, d.plan, d.state, d.caller, d.priority, 1, d.steps_total, d.steps_open, d.input, d.labels,
           d.idempotency_key, d.body_hash, d.correlation_id, d.parent_job, d.parent_no, d.parent_attempt, d.depth,
           d.retry_of, t.now, t.now + d.deadline, t.now + d.ttl, t.now + least(d.deadline, d.ttl),
           d.is_ttl_default
    FROM (
            SELECT id, input, labels, idempotency_key, body_hash, correlation_id, parent_job, parent_no,
                   parent_attempt, retry_of, deadline,
                   coalesce(recipe, ($2::text[])[1]) AS recipe,
                   coalesce(plan, ($3::text[])[1]) AS plan,
                   coalesce(state, ($4::text[])[1]) AS state,
                   coalesce(caller, ($5::text[])[1]) AS caller,
                   coalesce(priority, ($6::smallint[])[1]) AS priority,
                   coalesce(steps_total, ($7::int[])[1]) AS steps_total,
                   coalesce(steps_open, ($8::int[])[1]) AS steps_open,
                   coalesce(depth, ($17::smallint[])[1]) AS depth,
                   coalesce(ttl, ($20::interval[])[1]) AS ttl,
                   coalesce(is_ttl_default, ($29::bool[])[1]) AS is_ttl_default
            FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::smallint[], $7::int[],
                        $8::int[], $9::json[], $10::jsonb[], $11::text[], $12::text[], $13::text[], $14::uuid[],
                        $15::int[], $16::int[], $17::smallint[], $18::uuid[], $19::interval[], $20::interval[],
                        $29::bool[])
                AS u (id, recipe, plan, state, caller, priority, steps_total, steps_open, input, labels,
                      idempotency_key, body_hash, correlation_id, parent_job, parent_no, parent_attempt, depth,
                      retry_of, deadline, ttl, is_ttl_default)
        ) AS d,
        (SELECT windlass.clock() AS now) AS t
    ON CONFLICT DO NOTHING
    RETURNING id, caller, recipe, correlation_id
), step AS (
    INSERT INTO windlass.steps (job_id, no, node, state, queue, priority, unmet, timeout_s, lane, holds)
    SELECT d.job_id, coalesce(d.no, ($22::int[])[1]), coalesce(d.no, ($22::int[])[1]),
           coalesce(d.state, ($23::text[])[1]), coalesce(d.queue, ($24::text[])[1]),
           coalesce(d.priority, ($25::smallint[])[1]), coalesce(d.unmet, ($26::int[])[1]),
           coalesce(d.timeout_s, ($27::real[])[1]), coalesce(d.lane, ($28::text[])[1]),
           coalesce(d.holds, 0)
    FROM unnest(coalesce($21::uuid[], $1), $22::int[], $23::text[], $24::text[], $25::smallint[], $26::int[], $27::real[],
                $28::text[], $30::smallint[])
        AS d (job_id, no, state, queue, priority, unmet, timeout_s, lane, holds)
    -- Mostly all are new. The second half is a hashed look-up only because it stands behind an OR; by itself it would be
    -- planned as a join of every step with every job.
    WHERE (SELECT count(*) FROM job) = cardinality($1::uuid[]) OR d.job_id IN (SELECT id FROM job)
), event AS (
    INSERT INTO windlass.events (job_id, seq, at, type, source, payload, correlation_id)
    SELECT job.id, 1, (SELECT windlass.clock()), 'job.submitted', job.caller,
           CASE WHEN cardinality($31::json[]) > 0 THEN ($31::json[])[array_position($1::uuid[], job.id)] END,
           job.correlation_id
    FROM job
)
SELECT id FROM job

-- name: job_submit_one
-- The same for a job that is submitted alone, as far as values go: what is sent as arrays of one costs more than the
-- work itself. The job is $1 to $18 and $26, its steps $19 to $23 and $27 in their order, its event's payload $28. With
-- $24 its commit does not wait for the disk: a worker may begin while the submitter waits for that (engine/submit.py).
-- $25 says that the time to live is a default. The bells $29 and $30 go with a commit that does not wait for the disk.
WITH job AS (
    INSERT INTO windlass.jobs
        (id, recipe, plan, state, caller, priority, event_seq, steps_total, steps_open, input, labels,
         idempotency_key, body_hash, correlation_id, parent_job, parent_no, parent_attempt, depth, retry_of,
         created_at, deadline_at, expires_at, due_at, is_ttl_default)
    SELECT $1::uuid, $2::text, $3::text, $26::text, $4::text, $5::smallint, 1, $6::int, $6::int, $7::json, $8::jsonb,
           $9::text, $10::text, $11::text, $12::uuid, $13::int, $14::int, $15::smallint, $16::uuid,
           t.now, t.now + $17::interval, t.now + $18::interval, t.now + least($17::interval, $18::interval),
           $25::bool
    FROM (SELECT windlass.clock() AS now) AS t
    ON CONFLICT DO NOTHING
    RETURNING id, created_at
), step AS (
    INSERT INTO windlass.steps (job_id, no, node, state, queue, priority, unmet, timeout_s, lane, holds)
    SELECT $1, d.place - 1, d.place - 1, d.state, coalesce(d.queue, ($20::text[])[1]), $5,
           coalesce(d.unmet, ($21::int[])[1]), coalesce(d.timeout_s, ($22::real[])[1]),
           coalesce(d.lane, ($23::text[])[1]), coalesce(d.holds, 0)
    FROM unnest($19::text[], $20::text[], $21::int[], $22::real[], $23::text[], $27::smallint[]) WITH ORDINALITY
        AS d (state, queue, unmet, timeout_s, lane, holds, place)
    WHERE EXISTS (SELECT FROM job)
), event AS (
    INSERT INTO windlass.events (job_id, seq, at, type, source, payload, correlation_id)
    SELECT id, 1, created_at, 'job.submitted', $4, $28::json, $11 FROM job
)
SELECT id,
       CASE WHEN $24::bool THEN set_config('synchronous_commit', 'off', true) END,
       CASE WHEN cardinality($29::text[]) > 0 THEN (
           SELECT count(pg_notify(channel, payload)) FROM unnest($29, $30::text[]) AS b (channel, payload)
       ) > 0 END AS is_rung
FROM job

-- name: flush
-- A commit that waits for the disk, and with it for all commits before: claims and lone submits do not by themselves.
SELECT pg_logical_emit_message(true, 'windlass', ''),
       CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END

-- name: job_budget
-- What jobs may spend, given with them.
INSERT INTO windlass.budgets (scope, name, most, updated_at)
SELECT 'job', d.id::text, d.most, windlass.clock() FROM unnest($1::uuid[], $2::numeric[]) AS d (id, most)
ON CONFLICT DO NOTHING

-- name: job_budget_again
-- A job that is run again may spend as much as it might the first time.
INSERT INTO windlass.budgets (scope, name, most, updated_at)
SELECT 'job', $2::uuid::text, most, windlass.clock() FROM windlass.budgets WHERE scope = 'job' AND name = $1::uuid::text
ON CONFLICT DO NOTHING

-- name: job_parents
SELECT id, parent_job FROM windlass.jobs WHERE id = ANY ($1::uuid[]) AND parent_job IS NOT NULL

-- name: child_kin
-- What jobs hand down to those that they start. The job that one is a retry of, but not one that it is a re-run of: the
-- second event of a retry tells what it kept, and of a re-run from a step also which nodes begin afresh.
SELECT j.id, j.caller, j.priority, j.depth, j.correlation_id,
       extract(epoch FROM j.deadline_at - windlass.clock())::float8,
       extract(epoch FROM j.expires_at - windlass.clock())::float8, j.is_ttl_default,
       CASE WHEN e.seq IS NOT NULL THEN j.retry_of END, e.payload ->> 'fresh'
FROM windlass.jobs j
LEFT JOIN windlass.events e ON e.job_id = j.id AND e.seq = 2 AND e.type = 'job.kept'
WHERE j.id = ANY ($1::uuid[])

-- name: child_above
-- Of jobs ($1) that are about to start a recipe ($2): the jobs of that recipe among them and those above them.
WITH RECURSIVE line AS (
    SELECT c.start, c.recipe AS called, j.id, j.recipe, j.parent_job
    FROM unnest($1::uuid[], $2::text[]) AS c (start, recipe) JOIN windlass.jobs j ON j.id = c.start
    UNION ALL
    SELECT l.start, l.called, j.id, j.recipe, j.parent_job FROM line l JOIN windlass.jobs j ON j.id = l.parent_job
)
SELECT line.start, line.recipe, line.id, j.input
FROM line JOIN windlass.jobs j ON j.id = line.id
WHERE line.recipe = line.called

-- name: child_deadline
-- To the parents' own moment, not to a length of time: clocks are read at different moments.
UPDATE windlass.jobs c
SET deadline_at = least(c.deadline_at, p.deadline_at), due_at = least(c.due_at, p.deadline_at)
FROM windlass.jobs p
WHERE c.id = ANY ($1::uuid[]) AND p.id = c.parent_job AND p.deadline_at IS NOT NULL

-- name: child_before
-- The last child of each of these steps, if it ended without a result. Spawned jobs (attempt 0) are their handler's.
-- Each parent's children are read once, however many of its steps are asked for.
-- A step is known by its node and its place in the fan-out: in the new job it may have another number.
SELECT DISTINCT ON (c.parent_job, s.node, s.index) c.parent_job, s.node, s.index, c.id, c.plan, c.input
FROM (SELECT DISTINCT unnest($1::uuid[]) AS id) AS p
CROSS JOIN LATERAL (
    SELECT id, parent_job, parent_no, parent_attempt, plan, input FROM windlass.jobs
    WHERE parent_job = p.id AND parent_attempt > 0
      AND state IN ('FAILED', 'DENIED', 'TIMEOUT', 'CANCELLED', 'EXPIRED')
    OFFSET 0
) AS c
JOIN windlass.steps s ON s.job_id = c.parent_job AND s.no = c.parent_no AND s.node = ANY ($2::int[])
ORDER BY c.parent_job, s.node, s.index, c.parent_attempt DESC

-- name: child_spawner
-- The step whose handler starts a job, and how many it has started.
SELECT j.state AS job_state, s.state, s.attempt, s.worker,
       (SELECT count(*) FROM windlass.jobs c WHERE c.parent_job = $1 AND c.parent_no = $2) AS spawned
FROM windlass.jobs j JOIN windlass.steps s ON s.job_id = j.id AND s.no = $2
WHERE j.id = $1

-- name: job_same
-- The jobs that stand where these would have: by id, or by idempotency key.
SELECT d.place, j.id, j.state, j.body_hash
FROM unnest($1::uuid[], $2::text[], $3::text[]) WITH ORDINALITY AS d (id, caller, idempotency_key, place)
CROSS JOIN LATERAL (
    SELECT id, state, body_hash FROM windlass.jobs WHERE id = d.id
    UNION ALL
    SELECT id, state, body_hash FROM windlass.jobs WHERE caller = d.caller AND idempotency_key = d.idempotency_key
    LIMIT 1
) AS j
