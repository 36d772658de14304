-- What callers do to jobs, and what time does to them.

-- name: job_overdue
SELECT id, coalesce(deadline_at <= windlass.clock(), false) AS is_deadline
-- A parent's deadline is its children's too, and it is the parent that ran out of time.
FROM windlass.jobs WHERE due_at <= windlass.clock() ORDER BY due_at, depth LIMIT $1

-- name: job_outlived
-- When the last of the open jobs below a job expires, if that is later than the job does. Most expire with it: their
-- times were read from the clock a moment apart.
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
UPDATE windlass.jobs SET deleted_at = coalesce(deleted_at, windlass.clock()) WHERE id = $1 RETURNING id

-- name: job_row
SELECT id, recipe, plan, state, caller, priority, input, labels, correlation_id, steps_total, deleted_at,
       extract(epoch FROM deadline_at - created_at)::float8 AS deadline_s,
       CASE WHEN NOT is_ttl_default THEN extract(epoch FROM expires_at - created_at)::float8 END AS ttl_s,
       (SELECT is_served FROM windlass.installation) AS is_served
FROM windlass.jobs WHERE id = $1

-- name: job_by_key
SELECT id, body_hash FROM windlass.jobs WHERE caller = $1 AND idempotency_key = $2

-- name: step_rows
SELECT no, node, index, state, queue, unmet, fan, fanned, item, output, timeout_s,
       (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps WHERE job_id = $1 ORDER BY no

-- name: step_states
-- The same without what may be large.
SELECT no, node, index, state, unmet, fan, fanned, NULL AS item, NULL AS output,
       (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps WHERE job_id = $1 ORDER BY no

-- name: redriven_put
-- A job that ended badly was run again; says whether that is the first thing that was done about it.
INSERT INTO windlass.redriven AS r (job_id, new_job, at, by)
VALUES ($1, $2, windlass.clock(), $3)
ON CONFLICT (job_id) DO UPDATE SET new_job = excluded.new_job, at = excluded.at, by = excluded.by
RETURNING xmax = 0

-- name: retry_job
-- The job is new and nobody has claimed from it: it was inserted by this very transaction.
UPDATE windlass.jobs SET steps_total = $2, steps_open = $3, event_seq = 2, state = $4 WHERE id = $1

-- name: retry_step
-- OFFSET 0: from the given steps to their rows. The other way each row would be compared with all that are given.
UPDATE windlass.steps s
SET state = d.state, unmet = d.unmet, fan = d.fan, fanned = d.fanned, output = d.output, waiting_for = d.waiting_for,
    holds = d.holds, finished_at = CASE WHEN d.state IN ('COMPLETED', 'SKIPPED') THEN windlass.clock() END
FROM (
    SELECT $1::uuid AS job_id, u.*
    FROM unnest($2::int[], $3::text[], $4::int[], $5::int[], $6::int[], $7::json[], $8::text[], $9::smallint[])
        AS u (no, state, unmet, fan, fanned, output, waiting_for, holds)
    OFFSET 0
) AS d
WHERE s.job_id = d.job_id AND s.no = d.no

-- name: retry_children
-- A child's lane is that of its fan-out, whose number is its node's.
INSERT INTO windlass.steps
    (job_id, no, node, index, state, queue, priority, unmet, timeout_s, item, output, finished_at, lane, holds)
SELECT $1, d.no, d.node, d.index, d.state, d.queue, j.priority, 0, d.timeout_s, d.item, d.output,
       CASE WHEN d.state = 'COMPLETED' THEN windlass.clock() END, fan.lane, d.holds
FROM unnest($2::int[], $3::int[], $4::int[], $5::text[], $6::text[], $7::real[], $8::json[], $9::json[], $10::smallint[])
    AS d (no, node, index, state, queue, timeout_s, item, output, holds), windlass.jobs j, windlass.steps fan
WHERE j.id = $1 AND fan.job_id = $1 AND fan.no = d.node

-- name: retry_event
INSERT INTO windlass.events (job_id, seq, at, type, source, payload, correlation_id)
VALUES ($1, 2, windlass.clock(), 'job.kept', $2, $3, $4)

-- name: prune
-- Job ids begin with the time they were made, so the oldest jobs are first in the primary key: a job that is younger
-- than `$1` seconds cannot have finished longer ago.
WITH old AS (
    SELECT id FROM windlass.jobs
    WHERE id < rpad(lpad(to_hex(((extract(epoch FROM windlass.clock())::float8 - $1::float8) * 1000)::bigint), 12, '0'), 32, '0')::uuid
      AND finished_at < windlass.clock() - make_interval(secs => $1)
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
), slot AS (
    DELETE FROM windlass.slots WHERE job_id IN (SELECT id FROM old)
), work AS (
    DELETE FROM windlass.provider_jobs WHERE job_id IN (SELECT id FROM old)
), word AS (
    DELETE FROM windlass.provider_events WHERE job_id IN (SELECT id FROM old)
), cost AS (
    DELETE FROM windlass.costs WHERE job_id IN (SELECT id FROM old)
), redriven AS (
    DELETE FROM windlass.redriven WHERE job_id IN (SELECT id FROM old)
), budget AS (
    DELETE FROM windlass.budgets WHERE scope = 'job' AND name IN (SELECT id::text FROM old)
)
DELETE FROM windlass.jobs WHERE id IN (SELECT id FROM old) RETURNING id

-- name: ticket_forget
-- Rights to open a stream that nobody used in time. There are never many.
DELETE FROM windlass.tickets WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM windlass.tickets WHERE expires_at < windlass.clock() LIMIT $1 FOR UPDATE SKIP LOCKED
))

-- name: inbox_take
-- Reports in the order they came; a row goes only in the commit that applies it.
SELECT i.job_id, i.no, i.attempt, i.source, i.outcome FROM windlass.inbox i ORDER BY i.at, i.job_id, i.no LIMIT $1

-- name: inbox_cancel_children
-- When a job is swept, the child jobs that it waited for are to be cancelled too.
INSERT INTO windlass.inbox (job_id, no, attempt, source, outcome, at)
SELECT id, -1, 0, 'parent', '{}', windlass.clock() FROM windlass.jobs WHERE parent_job = $1 AND finished_at IS NULL
ON CONFLICT DO NOTHING

-- name: inbox_drop
DELETE FROM windlass.inbox i
USING unnest($1::uuid[], $2::int[], $3::int[], $4::text[]) AS d (job_id, no, attempt, source)
WHERE i.job_id = d.job_id AND i.no = d.no AND i.attempt = d.attempt AND i.source = d.source
