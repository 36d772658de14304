-- Loading and writing what is decided about jobs (store/drafts.py).
--
-- The connections of the engine plan no hash joins (store/database.py), so rows of one statement that belong together
-- are matched by their place in an array, never by a join of two arrays.

-- name: draft_lock
SELECT id FROM windlass.jobs WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE

-- name: draft_load
SELECT j.id, j.plan, j.state AS job_state, j.is_paused, j.version, j.steps_total, j.steps_open, j.steps_failed,
       j.parent_job, j.parent_no, j.parent_attempt, j.correlation_id,
       CASE WHEN j.is_ttl_default THEN j.expires_at END AS expires_at,
       s.no, s.node, s.index, s.state, s.unmet, s.attempt, s.failures, s.losses, s.fan, s.fanned, s.waiting_for,
       s.wake_at, s.worker, s.queue, s.holds, (SELECT windlass.clock()) AS now
FROM unnest($1::uuid[], $2::int[]) AS t (job_id, no)
JOIN windlass.jobs j ON j.id = t.job_id
JOIN windlass.steps s ON s.job_id = t.job_id AND s.no = t.no

-- name: draft_load_open
-- The same for every step of one job in the given states.
SELECT j.id, j.plan, j.state AS job_state, j.is_paused, j.version, j.steps_total, j.steps_open, j.steps_failed,
       j.parent_job, j.parent_no, j.parent_attempt, j.correlation_id,
       CASE WHEN j.is_ttl_default THEN j.expires_at END AS expires_at,
       s.no, s.node, s.index, s.state, s.unmet, s.attempt, s.failures, s.losses, s.fan, s.fanned, s.waiting_for,
       s.wake_at, s.worker, s.queue, s.holds, windlass.clock() AS now
FROM windlass.jobs j
LEFT JOIN windlass.steps s ON s.job_id = j.id AND s.state = ANY($2::text[])
WHERE j.id = $1

-- name: draft_write
-- Jobs are $1 to $9, steps $10 to $23 and $33 to $35, events $24 to $32. All of it, or nothing: if a job
-- is no longer at the version that was read, `require` ends the transaction. $23 and $33 are the attempt and the worker
-- of a step that was not read but remembered from its claim. It must be running still, on that worker: a crash or a
-- failover may have undone the claim and with it the version, and another worker may have got the same number. An
-- attempt of 0 stands for a step that was read. $34 is the queue of steps that wait apart, $35 the holds of
-- steps that are HELD.
--
-- The driver looks at every element of an array, so the arrays are kept short. A column that can hold no NULL and has one
-- value throughout comes with that value once; the state '' stands for a job that did not move. $10 is NULL if every job
-- has one step. $24 and $25 are empty if every job has the same events.
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
               coalesce(version, ($2::int[])[1]) AS version,
               coalesce(events, ($3::int[])[1]) AS events,
               nullif(coalesce(state, ($4::text[])[1]), '') AS state,
               coalesce(is_paused, ($5::bool[])[1]) AS is_paused,
               coalesce(steps_total, ($6::int[])[1]) AS steps_total,
               coalesce(steps_open, ($7::int[])[1]) AS steps_open,
               coalesce(steps_failed, ($8::int[])[1]) AS steps_failed
        FROM unnest($1::uuid[], $2::int[], $3::int[], $4::text[], $5::bool[], $6::int[], $7::int[], $8::int[],
                    $9::json[])
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
               coalesce(no, ($11::int[])[1]) AS no,
               coalesce(state, ($12::text[])[1]) AS state,
               coalesce(unmet, ($13::int[])[1]) AS unmet,
               coalesce(attempt, ($14::int[])[1]) AS attempt,
               coalesce(failures, ($15::int[])[1]) AS failures,
               coalesce(losses, ($16::int[])[1]) AS losses,
               coalesce(fence, ($23::int[])[1]) AS fence,
               coalesce(fence_worker, ($33::uuid[])[1]) AS fence_worker
        FROM unnest(coalesce($10::uuid[], $1), $11::int[], $12::text[], $13::int[], $14::int[], $15::int[], $16::int[], $17::int[],
                    $18::int[], $19::text[], $20::timestamptz[], $21::json[], $22::json[], $23::int[],
                    $33::uuid[], $34::text[], $35::smallint[])
            AS u (job_id, no, state, unmet, attempt, failures, losses, fan, fanned, waiting_for, wake_at, output,
                  error, fence, fence_worker, queue, holds)
    ) AS d
    WHERE s.job_id = d.job_id AND s.no = d.no
      AND (d.fence = 0 OR (s.attempt = d.fence AND s.worker = d.fence_worker AND s.state || '' = 'RUNNING'))
    RETURNING s.no
), event AS (
    INSERT INTO windlass.events
        (job_id, seq, at, type, source, no, attempt, payload, correlation_id, idempotency_key)
    SELECT ($1::uuid[])[d.place], (SELECT seqs FROM base)[d.place] + d.i, (SELECT windlass.clock()), d.type,
           coalesce(d.source, ($27::text[])[1]), d.no, d.attempt, d.payload, d.correlation_id, d.idempotency_key
    FROM unnest($24::int[], $25::int[], $26::text[], $27::text[], $28::int[], $29::int[], $30::json[], $31::text[],
                $32::text[])
        AS d (place, i, type, source, no, attempt, payload, correlation_id, idempotency_key)
    WHERE d.place IS NOT NULL
    UNION ALL
    SELECT won.id, won.seq + d.i, (SELECT windlass.clock()), d.type, coalesce(d.source, ($27::text[])[1]), d.no, d.attempt,
           d.payload, won.correlation_id, d.idempotency_key
    FROM won CROSS JOIN unnest($26::text[], $27::text[], $28::int[], $29::int[], $30::json[], $32::text[])
        WITH ORDINALITY AS d (type, source, no, attempt, payload, idempotency_key, i)
    WHERE cardinality($24::int[]) = 0
)
SELECT windlass.require(jobs = cardinality($1::uuid[])),
       windlass.require((SELECT count(*) FROM step) = cardinality(coalesce($10::uuid[], $1)))
FROM base

-- name: draft_complete
-- What draft_write does, for one job of which one step completed. Of the other steps that the draft changed, only the
-- state and `unmet` differ. The job is $1 to $4, the step $5 to $7 with its worker $16, the other steps $8, $9 and $15,
-- events $10 to $14.
WITH won AS (
    UPDATE windlass.jobs
    SET version = version + 1,
        event_seq = event_seq + cardinality($10::text[]),
        state = coalesce($3::text, state),
        steps_open = $4::int,
        trouble = CASE WHEN $4 = 0 THEN nullif($3, 'COMPLETED') END,
        finished_at = CASE WHEN $4 = 0 THEN windlass.clock() END,
        due_at = CASE WHEN $4 > 0 THEN due_at END
    WHERE id = $1::uuid AND version = $2::int
    RETURNING event_seq - cardinality($10::text[]) AS seq
), step AS (
    UPDATE windlass.steps
    SET state = 'COMPLETED', worker = NULL, waiting_for = NULL, wake_at = NULL, output = $7::json, error = NULL,
        finished_at = windlass.clock()
    WHERE job_id = $1 AND no = $5::int AND attempt = $6::int AND worker = $16::uuid AND state || '' = 'RUNNING'
    RETURNING no
), after AS (
    UPDATE windlass.steps s
    SET state = d.state, unmet = d.unmet
    -- OFFSET 0: from the given steps to their rows, never the other way; there may be thousands.
    FROM (
        SELECT $1::uuid AS job_id, u.* FROM unnest($8::int[], $9::text[], $15::int[]) AS u (no, state, unmet) OFFSET 0
    ) AS d
    WHERE s.job_id = d.job_id AND s.no = d.no
    RETURNING s.no
), event AS (
    INSERT INTO windlass.events (job_id, seq, at, type, source, no, attempt, correlation_id)
    SELECT $1, won.seq + d.i, windlass.clock(), d.type, $13::text, d.no, d.attempt, $14::text
    FROM won, unnest($10::text[], $11::int[], $12::int[]) WITH ORDINALITY AS d (type, no, attempt, i)
)
SELECT CASE WHEN (SELECT count(*) FROM won) + (SELECT count(*) FROM step) < 2
              OR (SELECT count(*) FROM after) < cardinality($8::int[])
            THEN windlass.require(false) END

-- name: draft_finish
-- What draft_complete does, for the step that was the last one: the job is COMPLETED with it. The job is $1 and $2, the
-- step $3 to $5 with its worker $8, its events $6 and $7. A job of one step ends here, so this is written out.
-- The bells $9 and $10 go with the commit if no other commit carries bells now (store/pool.py); it says whether they did.
WITH won AS (
    UPDATE windlass.jobs
    SET version = version + 1, event_seq = event_seq + 2, state = 'COMPLETED', steps_open = 0, trouble = NULL,
        finished_at = windlass.clock(), due_at = NULL
    WHERE id = $1::uuid AND version = $2::int
    RETURNING event_seq - 2 AS seq
), step AS (
    UPDATE windlass.steps
    SET state = 'COMPLETED', worker = NULL, waiting_for = NULL, wake_at = NULL, output = $5::json, error = NULL,
        finished_at = windlass.clock()
    WHERE job_id = $1 AND no = $3::int AND attempt = $4::int AND worker = $8::uuid AND state || '' = 'RUNNING'
    RETURNING no
), event AS (
    INSERT INTO windlass.events (job_id, seq, at, type, source, no, attempt, correlation_id)
    SELECT $1, won.seq + 1, windlass.clock(), 'step.completed', $6::text, $3, $4, $7::text FROM won
    UNION ALL
    SELECT $1, won.seq + 2, windlass.clock(), 'job.completed', $6, NULL, NULL, $7 FROM won
)
SELECT CASE WHEN (SELECT count(*) FROM won) + (SELECT count(*) FROM step) < 2 THEN windlass.require(false) END,
       CASE WHEN cardinality($9::text[]) > 0 AND pg_try_advisory_xact_lock(6015005) THEN (
           SELECT count(pg_notify(channel, payload)) FROM unnest($9, $10::text[]) AS b (channel, payload)
       ) > 0 END AS is_rung

-- name: draft_prolong
-- The default expiry of an open job moves; the job's row is locked.
UPDATE windlass.jobs SET expires_at = $2, due_at = least(deadline_at, $2) WHERE id = $1 AND finished_at IS NULL

-- name: draft_sweep
-- Every step that is still open is cancelled; the job's row is locked and already in its last state.
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
-- The children of fan-outs; their node's queue and time limit are given, their lane is the fan-out's, and all else
-- starts afresh.
INSERT INTO windlass.steps (job_id, no, node, index, state, queue, priority, unmet, timeout_s, item, lane)
SELECT $1, d.no, $2, d.index, $3, $4, j.priority, 0, $5, d.item, fan.lane
FROM unnest($6::int[], $7::int[], $8::json[]) AS d (no, index, item), windlass.jobs j, windlass.steps fan
WHERE j.id = $1 AND fan.job_id = $1 AND fan.no = $2

-- name: inbox_put
INSERT INTO windlass.inbox (job_id, no, attempt, source, outcome, at)
SELECT $1, $2, $3, $4, $5, windlass.clock()
ON CONFLICT DO NOTHING
