-- Jobs: submitting them, expiring them, and removing them.

-- fragment: job_new_columns
(id, recipe, plan, state, caller, priority, event_seq, steps_total, steps_open, input, labels,
 idempotency_key, body_hash, correlation_id, parent_job, parent_no, parent_attempt, depth, retry_of,
 created_at, deadline_at, expires_at, due_at, is_ttl_default, policy, rule)

-- name: job_submit
-- Inserts jobs, their first events with the payload `:told`, and their steps. A job whose id or idempotency key exists
-- is left out, with its steps; the caller then reads the existing job and compares. A column without NULLs whose values
-- are all equal is passed as one value. `:step_jobs` is NULL if every job has one step.
WITH job AS (
    INSERT INTO windlass.jobs
        -- include: job_new_columns
    SELECT d.id, d.recipe, d.plan, d.state, d.caller, d.priority, 1, d.steps_total, d.steps_open, d.input, d.labels,
           d.idempotency_key, d.body_hash, d.correlation_id, d.parent_job, d.parent_no, d.parent_attempt, d.depth,
           d.retry_of, t.now, t.now + d.deadline, t.now + d.ttl, t.now + least(d.deadline, d.ttl),
           d.is_ttl_default, d.policy, d.rule
    FROM (
            SELECT id, input, labels, idempotency_key, body_hash, correlation_id, parent_job, parent_no,
                   parent_attempt, retry_of, deadline,
                   coalesce(recipe, (:recipes::text[])[1]) AS recipe,
                   coalesce(plan, (:plans::text[])[1]) AS plan,
                   coalesce(state, (:states::text[])[1]) AS state,
                   coalesce(caller, (:callers::text[])[1]) AS caller,
                   coalesce(priority, (:priorities::smallint[])[1]) AS priority,
                   coalesce(steps_total, (:steps_total::int[])[1]) AS steps_total,
                   coalesce(steps_open, (:steps_open::int[])[1]) AS steps_open,
                   coalesce(depth, (:depths::smallint[])[1]) AS depth,
                   coalesce(ttl, (:ttls::interval[])[1]) AS ttl,
                   coalesce(is_ttl_default, (:ttl_defaults::bool[])[1]) AS is_ttl_default,
                   -- These have NULLs for jobs that may not go on. One element stands for all jobs.
                   CASE WHEN cardinality(:policies::bigint[]) = 1 THEN (:policies)[1] ELSE policy END AS policy,
                   CASE WHEN cardinality(:rules::text[]) = 1 THEN (:rules)[1] ELSE rule END AS rule
            FROM unnest(:ids::uuid[], :recipes::text[], :plans::text[], :states::text[], :callers::text[],
                        :priorities::smallint[], :steps_total::int[],
                        :steps_open::int[], :inputs::json[], :labels::jsonb[], :idempotency_keys::text[],
                        :body_hashes::text[], :correlation_ids::text[], :parent_jobs::uuid[],
                        :parent_nos::int[], :parent_attempts::int[], :depths::smallint[], :retries_of::uuid[],
                        :deadlines::interval[], :ttls::interval[],
                        :ttl_defaults::bool[], :policies::bigint[], :rules::text[])
                AS u (id, recipe, plan, state, caller, priority, steps_total, steps_open, input, labels,
                      idempotency_key, body_hash, correlation_id, parent_job, parent_no, parent_attempt, depth,
                      retry_of, deadline, ttl, is_ttl_default, policy, rule)
        ) AS d,
        (SELECT windlass.clock() AS now) AS t
    -- Refuses the statement if another policy than the one that judged the jobs is in force.
    WHERE :judged_by::bigint IS NULL OR (SELECT windlass.policy_check(:judged_by)) IS NOT NULL
    ON CONFLICT DO NOTHING
    RETURNING id, caller, recipe, correlation_id
), step AS (
    INSERT INTO windlass.steps (job_id, no, node, state, queue, priority, unmet, timeout_s, lane, holds)
    SELECT d.job_id, coalesce(d.no, (:step_nos::int[])[1]), coalesce(d.no, (:step_nos::int[])[1]),
           coalesce(d.state, (:step_states::text[])[1]), coalesce(d.queue, (:step_queues::text[])[1]),
           coalesce(d.priority, (:step_priorities::smallint[])[1]), coalesce(d.unmet, (:step_unmet::int[])[1]),
           coalesce(d.timeout_s, (:step_timeouts::real[])[1]), coalesce(d.lane, (:step_lanes::text[])[1]),
           coalesce(d.holds, 0)
    FROM unnest(coalesce(:step_jobs::uuid[], :ids), :step_nos::int[], :step_states::text[], :step_queues::text[],
                :step_priorities::smallint[], :step_unmet::int[], :step_timeouts::real[],
                :step_lanes::text[], :step_holds::smallint[])
        AS d (job_id, no, state, queue, priority, unmet, timeout_s, lane, holds)
    -- Usually all jobs are new. The second condition is a hashed lookup only because it follows an OR. Alone, the
    -- planner would make it a join of every step with every job.
    WHERE (SELECT count(*) FROM job) = cardinality(:ids::uuid[]) OR d.job_id IN (SELECT id FROM job)
), event AS (
    INSERT INTO windlass.events (job_id, seq, at, type, source, payload, correlation_id)
    SELECT job.id, 1, (SELECT windlass.clock()), 'job.submitted', job.caller,
           CASE WHEN cardinality(:told::json[]) = 1 THEN (:told::json[])[1]
                WHEN cardinality(:told::json[]) > 1 THEN (:told::json[])[array_position(:ids::uuid[], job.id)] END,
           job.correlation_id
    FROM job
)
-- One row for all: the ids are the caller's own, and jobs of one statement are made at one time.
SELECT (SELECT count(*) FROM job) AS made, windlass.clock() AS created_at,
       CASE WHEN :is_listed::bool THEN ARRAY(SELECT id FROM job) END AS ids

-- name: job_submit_one
-- Inserts one job, with single values as parameters: arrays of one element would cost more than the insert itself. With
-- `:is_ahead` the commit does not wait for the disk. A worker may then start while the submitter waits for the flush
-- (engine/submit.py), and the bells go with the commit.
WITH job AS (
    INSERT INTO windlass.jobs
        -- include: job_new_columns
    SELECT :id::uuid, :recipe::text, :plan::text, :state::text, :caller::text, :priority::smallint, 1, :steps::int,
           :steps::int, :input::json, :labels::jsonb,
           :idempotency_key::text, :body_hash::text, :correlation_id::text, :parent_job::uuid, :parent_no::int,
           :parent_attempt::int, :depth::smallint, :retry_of::uuid,
           t.now, t.now + :deadline::interval, t.now + :ttl::interval, t.now + least(:deadline::interval,
           :ttl::interval),
           :is_ttl_default::bool, :policy::bigint, :rule::text
    FROM (SELECT windlass.clock() AS now) AS t
    WHERE :judged_by::bigint IS NULL OR (SELECT windlass.policy_check(:judged_by)) IS NOT NULL
    ON CONFLICT DO NOTHING
    RETURNING id, created_at
), step AS (
    INSERT INTO windlass.steps (job_id, no, node, state, queue, priority, unmet, timeout_s, lane, holds)
    SELECT :id, d.place - 1, d.place - 1, d.state, coalesce(d.queue, (:step_queues::text[])[1]), :priority,
           coalesce(d.unmet, (:step_unmet::int[])[1]), coalesce(d.timeout_s, (:step_timeouts::real[])[1]),
           coalesce(d.lane, (:step_lanes::text[])[1]), coalesce(d.holds, 0)
    FROM unnest(:step_states::text[], :step_queues::text[], :step_unmet::int[], :step_timeouts::real[],
                :step_lanes::text[], :step_holds::smallint[]) WITH ORDINALITY
        AS d (state, queue, unmet, timeout_s, lane, holds, place)
    WHERE EXISTS (SELECT FROM job)
), event AS (
    INSERT INTO windlass.events (job_id, seq, at, type, source, payload, correlation_id)
    SELECT id, 1, created_at, 'job.submitted', :caller, :told::json, :correlation_id FROM job
)
SELECT 1 AS made, created_at,
       CASE WHEN :is_ahead::bool THEN set_config('synchronous_commit', 'off', true) END,
       CASE WHEN cardinality(:channels::text[]) > 0 THEN (
           SELECT count(pg_notify(channel, payload)) FROM unnest(:channels, :payloads::text[]) AS b (channel, payload)
       ) > 0 END AS is_rung
FROM job

-- name: flush
-- Commits and waits for the disk, and so for all earlier commits: claims and lone submits do not wait.
SELECT pg_logical_emit_message(true, 'windlass', ''),
       CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true) END

-- name: job_budget
-- Sets the budgets that jobs were submitted with.
INSERT INTO windlass.budgets (scope, name, most, updated_at)
SELECT 'job', d.id::text, d.most, windlass.clock() FROM unnest($1::uuid[], $2::numeric[]) AS d (id, most)
ON CONFLICT DO NOTHING

-- name: job_budget_again
-- Copies the budget of a job to the job that runs it again.
INSERT INTO windlass.budgets (scope, name, most, updated_at)
SELECT 'job', $2::uuid::text, most, windlass.clock() FROM windlass.budgets WHERE scope = 'job' AND name = $1::uuid::text
ON CONFLICT DO NOTHING

-- name: job_parents
SELECT id, parent_job FROM windlass.jobs WHERE id = ANY ($1::uuid[]) AND parent_job IS NOT NULL

-- name: job_same
-- The existing jobs with the id or the idempotency key of these jobs.
-- A job that its submit denied has the reason and the rule of the refusal.
SELECT d.place, j.id, j.state, j.body_hash, v.reason, v.rule
FROM unnest($1::uuid[], $2::text[], $3::text[]) WITH ORDINALITY AS d (id, caller, idempotency_key, place)
CROSS JOIN LATERAL (
    SELECT id, state, body_hash FROM windlass.jobs WHERE id = d.id
    UNION ALL
    SELECT id, state, body_hash FROM windlass.jobs WHERE caller = d.caller AND idempotency_key = d.idempotency_key
    LIMIT 1
) AS j
LEFT JOIN windlass.verdicts v
    ON j.state = 'DENIED' AND v.job_id = j.id AND v.seq = 1 AND v.edge = 'submit' AND v.decision = 'deny'

-- name: job_overdue
SELECT id, coalesce(deadline_at <= windlass.clock(), false) AS is_deadline
-- A child has its parent's deadline. The parent comes first, because it is the parent that ran out of time.
FROM windlass.jobs WHERE due_at <= windlass.clock() ORDER BY due_at, depth LIMIT $1

-- name: job_outlived
-- The latest expiry of the open jobs below a job, if it is later than the job's own. Most of them expire with the job:
-- their times were read from the clock a moment apart.
WITH RECURSIVE below AS (
    SELECT id, expires_at, 0 AS depth FROM windlass.jobs WHERE id = $1
    UNION ALL
    SELECT c.id, c.expires_at, b.depth + 1
    FROM below b JOIN windlass.jobs c ON c.parent_job = b.id AND c.parent_attempt > 0 AND c.finished_at IS NULL
)
SELECT max(c.expires_at) FROM below c
WHERE c.depth > 0 AND c.expires_at > windlass.clock()
  AND c.expires_at > (SELECT p.expires_at FROM below p WHERE p.depth = 0) + interval '1 minute'

-- name: job_delete
UPDATE windlass.jobs SET deleted_at = windlass.clock() WHERE id = $1 AND deleted_at IS NULL RETURNING id

-- name: job_row
SELECT id, recipe, plan, state, caller, priority, input, labels, correlation_id, steps_total, deleted_at,
       extract(epoch FROM deadline_at - created_at)::float8 AS deadline_s,
       CASE WHEN NOT is_ttl_default THEN extract(epoch FROM expires_at - created_at)::float8 END AS ttl_s,
       (SELECT is_served FROM windlass.installation) AS is_served,
       CASE WHEN policy IS NOT NULL OR state = 'DENIED' THEN (
           SELECT e.payload ->> 'caller' FROM windlass.events e WHERE e.job_id = $1 AND e.seq = 1
       ) END AS asker
FROM windlass.jobs WHERE id = $1

-- name: job_by_key
SELECT id, body_hash FROM windlass.jobs WHERE caller = $1 AND idempotency_key = $2

-- name: prune
-- A job's id starts with its creation time, so the oldest jobs come first in the primary key. A job that is younger
-- than `$1` seconds cannot have finished longer ago.
WITH old AS (
    SELECT id FROM windlass.jobs
    WHERE id < rpad(lpad(to_hex(((extract(epoch FROM windlass.clock())::float8 - $1::float8) * 1000)::bigint), 12,
    '0'), 32, '0')::uuid
      AND finished_at < windlass.clock() - make_interval(secs => $1)
      -- An undo job reads the inputs and outputs of the job that it undoes.
      AND NOT EXISTS (
          SELECT FROM windlass.undos u JOIN windlass.jobs undo ON undo.id = u.undo_job
          WHERE u.job_id = jobs.id AND undo.finished_at IS NULL
      )
    ORDER BY id LIMIT $2
    FOR UPDATE SKIP LOCKED
), event AS (
    DELETE FROM windlass.events WHERE job_id IN (SELECT id FROM old)
), step AS (
    DELETE FROM windlass.steps WHERE job_id IN (SELECT id FROM old)
), note AS (
    DELETE FROM windlass.inbox WHERE job_id IN (SELECT id FROM old)
), webhook AS (
    DELETE FROM windlass.webhooks WHERE job_id IN (SELECT id FROM old)
), signal AS (
    DELETE FROM windlass.signals WHERE job_id IN (SELECT id FROM old)
), wait AS (
    DELETE FROM windlass.waits WHERE job_id IN (SELECT id FROM old)
), approval AS (
    DELETE FROM windlass.approvals WHERE job_id IN (SELECT id FROM old) RETURNING id
), vote AS (
    DELETE FROM windlass.votes WHERE approval_id IN (SELECT id FROM approval)
), slot AS (
    DELETE FROM windlass.slots WHERE job_id IN (SELECT id FROM old)
), work AS (
    DELETE FROM windlass.provider_jobs WHERE job_id IN (SELECT id FROM old)
), word AS (
    DELETE FROM windlass.provider_events WHERE job_id IN (SELECT id FROM old)
), cost AS (
    DELETE FROM windlass.costs WHERE job_id IN (SELECT id FROM old)
), undo AS (
    DELETE FROM windlass.undos WHERE job_id IN (SELECT id FROM old)
), undo_attempt AS (
    DELETE FROM windlass.undo_attempts WHERE job_id IN (SELECT id FROM old)
), undo_moved AS (
    DELETE FROM windlass.undo_moved WHERE job_id IN (SELECT id FROM old)
), undo_kept AS (
    DELETE FROM windlass.undo_kept WHERE job_id IN (SELECT id FROM old)
), redriven AS (
    DELETE FROM windlass.redriven WHERE job_id IN (SELECT id FROM old)
), verdict AS (
    DELETE FROM windlass.verdicts WHERE job_id IN (SELECT id FROM old)
), budget AS (
    DELETE FROM windlass.budgets WHERE scope = 'job' AND name IN (SELECT id::text FROM old)
)
DELETE FROM windlass.jobs WHERE id IN (SELECT id FROM old) RETURNING id

-- name: job_inputs
SELECT id, input FROM windlass.jobs WHERE id = ANY($1::uuid[])
