-- Undo jobs: what they undo, and the attempts that they wait for (core/undo.py, store/undo.py).

-- name: undo_past
-- The steps of these nodes ($2).
SELECT no, node, index, state, attempt, worker, wake_at FROM windlass.steps
WHERE job_id = $1 AND node = ANY ($2::int[]) ORDER BY no

-- name: undo_ends
-- The number of the event of each step's end. A statement of its own: joined with the steps, it took time that grew with
-- the square of their number, because these connections plan no hash joins.
SELECT no, max(seq) AS seq FROM windlass.events
WHERE job_id = $1 AND type IN ('step.completed', 'step.failed', 'step.quarantined') GROUP BY no

-- name: undo_taken_over
-- The finished steps that a job took over from an earlier job together with their effects.
SELECT coalesce(array_agg(t.place::int ORDER BY t.place::int), '{}'::int[])
FROM windlass.events e, json_array_elements_text(coalesce(e.payload -> 'effects', '[]')) AS t (place)
WHERE e.job_id = $1 AND e.seq = 2 AND e.type = 'job.kept'

-- name: undo_child_plans
-- The plans of the child jobs that steps of a job wait or waited for. A kept step's child belongs to an earlier job.
WITH RECURSIVE line AS (
    SELECT id, retry_of FROM windlass.jobs WHERE id = $1
    UNION ALL
    SELECT j.id, j.retry_of FROM line JOIN windlass.jobs j ON j.id = line.retry_of
)
SELECT s.no, s.node, s.index, c.plan, line.id = $1 AS is_own
FROM line
JOIN windlass.jobs c ON c.parent_job = line.id AND c.parent_attempt > 0
JOIN windlass.steps s ON s.job_id = line.id AND s.no = c.parent_no

-- name: undo_job_row
SELECT j.caller, j.labels, j.correlation_id, j.state, j.plan, (SELECT is_served FROM windlass.installation) AS is_served
FROM windlass.jobs j WHERE j.id = $1

-- name: undo_parts
-- The undo jobs of a job, the first one first.
SELECT u.part, u.undo_job, u.is_waiting, u.is_asked, j.state, j.plan
FROM windlass.undos u JOIN windlass.jobs j ON j.id = u.undo_job
WHERE u.job_id = $1 ORDER BY u.part

-- name: undo_steps
SELECT no, state FROM windlass.steps WHERE job_id = $1 ORDER BY no

-- name: undo_put
INSERT INTO windlass.undos (job_id, part, undo_job, is_waiting, is_asked, created_at)
VALUES ($1, $2, $3, $4, $5, windlass.clock())

-- name: undo_attempts_put
-- Attempts in progress at the end of their job, which may still succeed.
INSERT INTO windlass.undo_attempts (job_id, no, attempt, worker, until, state)
SELECT $1, d.no, d.attempt, d.worker, d.until, d.state
FROM unnest($2::int[], $3::int[], $4::uuid[], $5::timestamptz[], $6::text[]) AS d (no, attempt, worker, until, state)
ON CONFLICT DO NOTHING

-- name: undo_attempt_done
-- Records the late success of an attempt, once. Returns its state before. The lock in `before` reads the newest version
-- of the row: the undoer may just have ended the wait.
WITH before AS MATERIALIZED (
    SELECT job_id, no, state FROM windlass.undo_attempts
    WHERE job_id = $1 AND no = $2 AND attempt = $3 AND worker IS NOT DISTINCT FROM $4 AND state <> 'DONE'
    FOR UPDATE
)
UPDATE windlass.undo_attempts a SET state = 'DONE', output = $5
FROM before WHERE a.job_id = before.job_id AND a.no = before.no
RETURNING before.state

-- name: undo_attempt_over
-- Records that an attempt ended in another way. Returns true if the undo waited for it.
UPDATE windlass.undo_attempts SET state = 'OVER'
WHERE job_id = $1 AND no = $2 AND attempt = $3 AND worker IS NOT DISTINCT FROM $4 AND state = 'WAITED'
RETURNING true

-- name: undo_attempts_lost
-- Ends the wait for attempts of lost workers, and for attempts past their time limit and a grace period ($1).
WITH over AS MATERIALIZED (
    SELECT a.job_id, a.no FROM windlass.undo_attempts a
    WHERE a.state = 'WAITED' AND (
        NOT EXISTS (SELECT FROM windlass.workers w WHERE w.id = a.worker AND w.lost_at IS NULL)
        OR greatest(a.until, (SELECT back_at FROM windlass.installation)) + make_interval(secs => $1) < windlass.clock()
    )
    ORDER BY a.job_id, a.no
    FOR UPDATE SKIP LOCKED
)
UPDATE windlass.undo_attempts a SET state = 'OVER' FROM over WHERE a.job_id = over.job_id AND a.no = over.no

-- name: undo_waiting
-- Undo jobs that need not wait any longer, at most $1.
SELECT u.job_id, u.undo_job FROM windlass.undos u
WHERE u.is_waiting
  AND NOT EXISTS (SELECT FROM windlass.undo_attempts a WHERE a.job_id = u.job_id AND a.state = 'WAITED')
ORDER BY u.job_id, u.part LIMIT $1

-- name: undo_due
-- Due now if an undo job need not wait any longer or waits for a lost worker; otherwise when an attempt's time is over.
SELECT CASE
    WHEN EXISTS (
        SELECT FROM windlass.undos u WHERE u.is_waiting AND NOT EXISTS (
            SELECT FROM windlass.undo_attempts a WHERE a.job_id = u.job_id AND a.state = 'WAITED'
        )
    ) OR EXISTS (
        SELECT FROM windlass.undo_attempts a LEFT JOIN windlass.workers w ON w.id = a.worker
        WHERE a.state = 'WAITED' AND (w.id IS NULL OR w.lost_at IS NOT NULL)
    ) THEN windlass.clock()
    ELSE (
        SELECT greatest(min(until), (SELECT back_at FROM windlass.installation)) FROM windlass.undo_attempts
        WHERE state = 'WAITED' HAVING min(until) IS NOT NULL
    ) + make_interval(secs => $1::float8) END

-- name: undo_waited
UPDATE windlass.undos SET is_waiting = false WHERE undo_job = $1

-- name: undo_allowed
UPDATE windlass.undos SET is_asked = false WHERE undo_job = $1

-- name: undo_look
-- What became of an attempt that was in progress when its job ended: $1 is the undo job, $2 the step. The lock makes the
-- answer final: an attempt that has not succeeded yet is PASSED, and a later success gets another undo job.
WITH found AS MATERIALIZED (
    SELECT a.job_id, a.no, a.state, a.output
    FROM windlass.undos u JOIN windlass.undo_attempts a ON a.job_id = u.job_id AND a.no = $2
    WHERE u.undo_job = $1
    FOR UPDATE OF a
), passed AS (
    UPDATE windlass.undo_attempts a SET state = 'PASSED'
    FROM found WHERE found.state = 'OVER' AND a.job_id = found.job_id AND a.no = found.no
)
SELECT found.state AS word, found.output, 'COMPLETED' AS state,
       (SELECT j.state FROM windlass.jobs j WHERE j.id = found.job_id) AS job_state
FROM found

-- name: undo_arguments
-- The step that an undo step undoes: $1 is the undo job, $2 the number of the step.
SELECT u.job_id, j.plan, j.state AS job_state, j.input, j.caller, s.node, s.index, s.item, s.state, s.output
FROM windlass.undos u
JOIN windlass.jobs j ON j.id = u.job_id
JOIN windlass.steps s ON s.job_id = u.job_id AND s.no = $2
WHERE u.undo_job = $1

-- name: undo_done
-- The steps of a job whose attempts succeeded after its end.
SELECT no FROM windlass.undo_attempts WHERE job_id = $1 AND state = 'DONE'

-- name: undo_child
-- The newest child job of a step; that of a kept step belongs to an earlier job.
WITH RECURSIVE line AS (
    SELECT j.id, j.retry_of, s.node, s.index, 0 AS age
    FROM windlass.jobs j JOIN windlass.steps s ON s.job_id = j.id AND s.no = $2 WHERE j.id = $1
    UNION ALL
    SELECT j.id, j.retry_of, line.node, line.index, line.age + 1
    FROM line JOIN windlass.jobs j ON j.id = line.retry_of
)
SELECT c.id, c.state, c.plan
FROM line
JOIN windlass.steps s ON s.job_id = line.id AND s.node = line.node AND s.index IS NOT DISTINCT FROM line.index
JOIN windlass.jobs c ON c.parent_job = line.id AND c.parent_no = s.no AND c.parent_attempt > 0
ORDER BY line.age, c.parent_attempt DESC LIMIT 1

-- name: undo_of
SELECT job_id FROM windlass.undos WHERE undo_job = $1

-- name: undo_kept_put
INSERT INTO windlass.undo_kept (job_id) VALUES ($1) ON CONFLICT DO NOTHING

-- name: undo_moved_put
WITH kept AS (
    DELETE FROM windlass.undo_kept WHERE job_id = $1
)
INSERT INTO windlass.undo_moved (job_id, new_job) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true

-- name: undo_is_moved
SELECT new_job FROM windlass.undo_moved WHERE job_id = $1

-- name: undo_is_waiting
SELECT EXISTS (SELECT FROM windlass.undo_attempts WHERE job_id = $1 AND state = 'WAITED')

-- name: undo_now
SELECT windlass.clock()
