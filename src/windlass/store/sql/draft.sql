-- Loads and writes drafts: the decisions about jobs (store/drafts.py).
--
-- The engine's connections plan no hash joins (store/database.py). So rows of one statement that belong together are
-- matched by their position in an array, never by a join of two arrays.

-- name: draft_lock
SELECT id FROM windlass.jobs WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE

-- fragment: draft_columns
-- A job's error is parsed only if it has one.
j.id, j.plan, j.state AS job_state, j.is_paused, j.version, j.steps_total, j.steps_open, j.steps_failed,
j.parent_job, j.parent_no, j.parent_attempt, j.correlation_id,
CASE WHEN j.is_ttl_default THEN j.expires_at END AS expires_at,
CASE WHEN j.steps_failed > 0 THEN j.error ->> 'code' END AS failure_code, j.attempts_max,
s.no, s.node, s.index, s.state, s.unmet, s.attempt, s.failures, s.losses, s.fan, s.fanned, s.waiting_for,
s.wake_at, s.worker, s.queue, s.holds,

-- name: draft_load
SELECT
       -- include: draft_columns
       (SELECT windlass.clock()) AS now
FROM unnest($1::uuid[], $2::int[]) AS t (job_id, no)
JOIN windlass.jobs j ON j.id = t.job_id
JOIN windlass.steps s ON s.job_id = t.job_id AND s.no = t.no

-- name: draft_load_open
-- Loads every step of these jobs in the given states, with the columns of draft_load.
SELECT
       -- include: draft_columns
       windlass.clock() AS now
FROM windlass.jobs j
LEFT JOIN windlass.steps s ON s.job_id = j.id AND s.state = ANY($2::text[])
WHERE j.id = ANY($1::uuid[])

-- name: draft_write
-- Writes many drafts: jobs, steps, events. It writes everything or nothing: if a job no longer has the version that was
-- read, `require` aborts the transaction.
--
-- `fences` and `fence_workers` are the attempt and the worker of a step that was not read but remembered from its
-- claim. That attempt must still run on that worker. A crash or a failover may have undone the claim, and with it the
-- version, and another worker may have got the same attempt number. An attempt of 0 means that the step was read.
-- `queues` is the new queue of steps that were requeued, `holds` the holds of HELD steps.
--
-- The driver checks every element of an array, so arrays are kept short. A column without NULLs whose values are all
-- equal is passed as one value. The state '' means that the job did not move. `step_jobs` is NULL if every job has one
-- step. `places` and `orders` are empty if every job has the same events.
WITH won AS (
    UPDATE windlass.jobs j
    SET version = j.version + 1,
        event_seq = j.event_seq + d.events,
        state = coalesce(d.state, j.state),
        is_paused = d.is_paused,
        steps_total = d.steps_total,
        steps_open = d.steps_open,
        steps_failed = d.steps_failed,
        error = coalesce(j.error, d.error),
        trouble = CASE WHEN d.steps_open = 0 THEN nullif(d.state, 'COMPLETED') END,
        finished_at = CASE WHEN d.steps_open = 0 THEN (SELECT windlass.clock()) END,
        due_at = CASE WHEN d.steps_open > 0 THEN j.due_at END
    FROM (
        SELECT id, error, place,
               coalesce(version, (:versions::int[])[1]) AS version,
               coalesce(events, (:event_counts::int[])[1]) AS events,
               nullif(coalesce(state, (:job_states::text[])[1]), '') AS state,
               coalesce(is_paused, (:paused::bool[])[1]) AS is_paused,
               coalesce(steps_total, (:totals::int[])[1]) AS steps_total,
               coalesce(steps_open, (:opens::int[])[1]) AS steps_open,
               coalesce(steps_failed, (:failed::int[])[1]) AS steps_failed
        FROM unnest(:jobs::uuid[], :versions::int[], :event_counts::int[], :job_states::text[], :paused::bool[], :totals::int[], :opens::int[], :failed::int[],
                    :job_errors::json[])
            WITH ORDINALITY
            AS u (id, version, events, state, is_paused, steps_total, steps_open, steps_failed, error, place)
    ) AS d
    WHERE j.id = d.id AND j.version = d.version
    RETURNING j.id, j.event_seq - d.events AS seq, j.correlation_id, d.place
), base AS (
    SELECT array_agg(seq ORDER BY place) AS seqs, count(*) AS jobs FROM won
), step AS (
    UPDATE windlass.steps s
    SET state = d.state,
        unmet = d.unmet,
        attempt = d.attempt,
        failures = d.failures,
        losses = d.losses,
        fan = d.fan,
        fanned = d.fanned,
        worker = NULL,
        waiting_for = d.waiting_for,
        wake_at = d.wake_at,
        output = d.output,
        error = CASE WHEN d.state <> 'COMPLETED' THEN coalesce(d.error, s.error) END,
        queue = coalesce(d.queue, s.queue),
        holds = coalesce(d.holds, 0),
        finished_at = CASE WHEN d.state IN
            ('COMPLETED', 'SKIPPED', 'FAILED', 'CANCELLED', 'DENIED', 'QUARANTINED', 'ABANDONED')
            THEN (SELECT windlass.clock()) END
    FROM (
        SELECT job_id, fan, fanned, waiting_for, wake_at, output, error, queue, holds,
               coalesce(no, (:nos::int[])[1]) AS no,
               coalesce(state, (:states::text[])[1]) AS state,
               coalesce(unmet, (:unmets::int[])[1]) AS unmet,
               coalesce(attempt, (:attempts::int[])[1]) AS attempt,
               coalesce(failures, (:failures::int[])[1]) AS failures,
               coalesce(losses, (:losses::int[])[1]) AS losses,
               coalesce(fence, (:fences::int[])[1]) AS fence,
               coalesce(fence_worker, (:fence_workers::uuid[])[1]) AS fence_worker
        FROM unnest(coalesce(:step_jobs::uuid[], :jobs), :nos::int[], :states::text[], :unmets::int[],
                    :attempts::int[], :failures::int[], :losses::int[], :fans::int[],
                    :fanned::int[], :waits::text[], :wake_ats::timestamptz[], :outputs::json[], :errors::json[], :fences::int[],
                    :fence_workers::uuid[], :queues::text[], :holds::smallint[])
            AS u (job_id, no, state, unmet, attempt, failures, losses, fan, fanned, waiting_for, wake_at, output,
                  error, fence, fence_worker, queue, holds)
    ) AS d
    -- The first condition is tested once, before any step: a write that is refused costs little.
    WHERE (SELECT jobs FROM base) = cardinality(:jobs::uuid[])
      AND s.job_id = d.job_id AND s.no = d.no
      AND (d.fence = 0 OR (s.attempt = d.fence AND s.worker = d.fence_worker AND s.state || '' = 'RUNNING'))
    RETURNING s.no
), event AS (
    INSERT INTO windlass.events
        (job_id, seq, at, type, source, no, attempt, payload, correlation_id, idempotency_key)
    SELECT (:jobs::uuid[])[d.place], (SELECT seqs FROM base)[d.place] + d.i, (SELECT windlass.clock()), d.type,
           coalesce(d.source, (:sources::text[])[1]), d.no, d.attempt, d.payload, d.correlation_id, d.idempotency_key
    FROM unnest(:places::int[], :orders::int[], :types::text[], :sources::text[], :event_nos::int[], :event_attempts::int[], :payloads::json[], :correlation_ids::text[],
                :keys::text[])
        AS d (place, i, type, source, no, attempt, payload, correlation_id, idempotency_key)
    WHERE d.place IS NOT NULL
    UNION ALL
    SELECT won.id, won.seq + d.i, (SELECT windlass.clock()), d.type, coalesce(d.source, (:sources::text[])[1]), d.no, d.attempt,
           d.payload, won.correlation_id, d.idempotency_key
    FROM won CROSS JOIN unnest(:types::text[], :sources::text[], :event_nos::int[], :event_attempts::int[], :payloads::json[], :keys::text[])
        WITH ORDINALITY AS d (type, source, no, attempt, payload, idempotency_key, i)
    WHERE cardinality(:places::int[]) = 0
)
SELECT windlass.require(jobs = cardinality(:jobs::uuid[])),
       windlass.require((SELECT count(*) FROM step) = cardinality(coalesce(:step_jobs::uuid[], :jobs)))
FROM base

-- fragment: step_completed
UPDATE windlass.steps
SET state = 'COMPLETED', worker = NULL, waiting_for = NULL, wake_at = NULL, output = :output::json, error = NULL,
    finished_at = windlass.clock()
WHERE job_id = :job AND no = :no::int AND attempt = :attempt::int AND worker = :worker::uuid AND state || '' = 'RUNNING'
RETURNING no

-- name: draft_complete
-- A faster draft_write for one job with one completed step. In the other changed steps only the state and `unmet`
-- differ (`after_…`).
WITH won AS (
    UPDATE windlass.jobs
    SET version = version + 1,
        event_seq = event_seq + cardinality(:types::text[]),
        state = coalesce(:job_state::text, state),
        steps_open = :steps_open::int,
        trouble = CASE WHEN :steps_open = 0 THEN nullif(:job_state, 'COMPLETED') END,
        finished_at = CASE WHEN :steps_open = 0 THEN windlass.clock() END,
        due_at = CASE WHEN :steps_open > 0 THEN due_at END
    WHERE id = :job::uuid AND version = :version::int
    RETURNING event_seq - cardinality(:types::text[]) AS seq
), step AS (
    -- include: step_completed
), after AS (
    UPDATE windlass.steps s
    SET state = d.state, unmet = d.unmet
    -- OFFSET 0 makes the planner go from the given steps to their rows, not the other way: there may be thousands of
    -- rows.
    FROM (
        SELECT :job::uuid AS job_id, u.* FROM unnest(:after_nos::int[], :after_states::text[], :after_unmets::int[]) AS u (no, state, unmet) OFFSET 0
    ) AS d
    WHERE s.job_id = d.job_id AND s.no = d.no
    RETURNING s.no
), event AS (
    INSERT INTO windlass.events (job_id, seq, at, type, source, no, attempt, correlation_id)
    SELECT :job, won.seq + d.i, windlass.clock(), d.type, :source::text, d.no, d.attempt, :correlation_id::text
    FROM won, unnest(:types::text[], :event_nos::int[], :event_attempts::int[]) WITH ORDINALITY AS d (type, no, attempt, i)
)
SELECT CASE WHEN (SELECT count(*) FROM won) + (SELECT count(*) FROM step) < 2
              OR (SELECT count(*) FROM after) < cardinality(:after_nos::int[])
            THEN windlass.require(false) END

-- name: draft_finish
-- A faster draft_complete for the last step of a job, which completes the job. Every job of one step ends here, so the
-- statement is written out. The bells (`channels`, `payloads`) go with the commit unless another commit carries bells
-- now (store/pool.py). Returns whether they did.
WITH won AS (
    UPDATE windlass.jobs
    SET version = version + 1, event_seq = event_seq + 2, state = 'COMPLETED', steps_open = 0, trouble = NULL,
        finished_at = windlass.clock(), due_at = NULL
    WHERE id = :job::uuid AND version = :version::int
    RETURNING event_seq - 2 AS seq
), step AS (
    -- include: step_completed
), event AS (
    INSERT INTO windlass.events (job_id, seq, at, type, source, no, attempt, correlation_id)
    SELECT :job, won.seq + 1, windlass.clock(), 'step.completed', :source::text, :no, :attempt, :correlation_id::text FROM won
    UNION ALL
    SELECT :job, won.seq + 2, windlass.clock(), 'job.completed', :source, NULL, NULL, :correlation_id FROM won
)
SELECT CASE WHEN (SELECT count(*) FROM won) + (SELECT count(*) FROM step) < 2 THEN windlass.require(false) END,
       CASE WHEN cardinality(:channels::text[]) > 0 AND pg_try_advisory_xact_lock(6015005) THEN (
           SELECT count(pg_notify(channel, payload)) FROM unnest(:channels, :payloads::text[]) AS b (channel, payload)
       ) > 0 END AS is_rung

-- name: draft_prolong
-- Moves the default expiry of an open job. The caller holds the lock of the job's row.
UPDATE windlass.jobs SET expires_at = $2, due_at = least(deadline_at, $2) WHERE id = $1 AND finished_at IS NULL

-- name: draft_sweep
-- Cancels every open step. The job's row is locked and already has its final state.
WITH swept AS (
    UPDATE windlass.steps
    SET state = 'CANCELLED', worker = NULL, wake_at = NULL, waiting_for = NULL, holds = 0, finished_at = windlass.clock()
    WHERE job_id = $1
      AND state IN ('BLOCKED', 'READY', 'HELD', 'QUEUED', 'RUNNING', 'PARKED')
    RETURNING no, attempt
), numbered AS (
    SELECT no, attempt, row_number() OVER (ORDER BY no) AS i FROM swept
), event AS (
    INSERT INTO windlass.events (job_id, seq, at, type, source, no, attempt, correlation_id)
    SELECT $1, j.event_seq + i, windlass.clock(), 'step.cancelled', $2, no, attempt, j.correlation_id
    FROM numbered, windlass.jobs j WHERE j.id = $1
)
UPDATE windlass.jobs SET event_seq = event_seq + (SELECT count(*) FROM swept) WHERE id = $1

-- name: draft_children
-- Inserts the children of a fan-out. The parameters have the node's queue and time limit; the lane is the fan-out's.
INSERT INTO windlass.steps (job_id, no, node, index, state, queue, priority, unmet, timeout_s, item, lane)
SELECT $1, d.no, $2, d.index, $3, $4, j.priority, 0, $5, d.item, fan.lane
FROM unnest($6::int[], $7::int[], $8::json[]) AS d (no, index, item), windlass.jobs j, windlass.steps fan
WHERE j.id = $1 AND fan.job_id = $1 AND fan.no = $2

-- name: inbox_put
INSERT INTO windlass.inbox (job_id, no, attempt, source, outcome, at)
SELECT $1, $2, $3, $4, $5, windlass.clock()
ON CONFLICT DO NOTHING
