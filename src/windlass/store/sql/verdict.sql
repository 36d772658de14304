-- Verdicts of the policy about jobs and steps (engine/door.py, engine/recheck.py).

-- name: verdict_first
-- The verdicts about new jobs. A submit that is repeated after an interrupted commit changes nothing.
INSERT INTO windlass.verdicts (job_id, seq, edge, decision, rule, policy, reason, constraints, at)
SELECT d.job_id, 1, 'submit', d.decision, d.rule, $5, d.reason, d.constraints, windlass.clock()
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $6::json[])
    AS d (job_id, decision, rule, reason, constraints)
ON CONFLICT DO NOTHING

-- name: verdict_deny_new
-- Ends new jobs, and tells the steps of their parents. This transaction made them, so nothing runs yet.
WITH gone AS (
    UPDATE windlass.jobs j
    SET state = 'DENIED', trouble = 'DENIED', error = d.error, steps_open = 0, event_seq = 2, version = j.version + 1,
        finished_at = windlass.clock(), due_at = NULL
    FROM unnest($1::uuid[], $2::json[]) AS d (id, error)
    WHERE j.id = d.id
    RETURNING j.id, j.error, j.correlation_id, j.parent_job, j.parent_no, j.parent_attempt
), step AS (
    UPDATE windlass.steps s SET finished_at = windlass.clock() FROM gone WHERE s.job_id = gone.id
), event AS (
    INSERT INTO windlass.events (job_id, seq, at, type, source, payload, correlation_id)
    SELECT id, 2, windlass.clock(), 'job.denied', 'policy', json_build_object('error', error), correlation_id FROM gone
)
INSERT INTO windlass.inbox (job_id, no, attempt, source, outcome, at)
SELECT parent_job, parent_no, parent_attempt, 'child',
       json_build_object('child', id::text, 'state', 'DENIED'), windlass.clock()
FROM gone WHERE parent_job IS NOT NULL
ON CONFLICT DO NOTHING
RETURNING job_id

-- name: verdict_refused
-- The refusal of a job that its submit denied.
SELECT rule, reason FROM windlass.verdicts WHERE job_id = $1 AND seq = 1 AND edge = 'submit' AND decision = 'deny'

-- name: verdict_limit_new
-- The limits of new jobs that their rows hold.
UPDATE windlass.jobs j SET attempts_max = d.attempts_max
FROM unnest($1::uuid[], $2::smallint[]) AS d (id, attempts_max)
WHERE j.id = d.id

-- name: verdict_hold_new
-- Marks new jobs that the policy holds, and when it is asked again about those that it throttles.
UPDATE windlass.jobs j
SET gate_at = windlass.clock() + make_interval(secs => d.wait_s), gate_tries = (d.wait_s IS NOT NULL)::int
FROM unnest($1::uuid[], $2::float8[]) AS d (id, wait_s)
WHERE j.id = d.id

-- name: verdict_put
-- A later verdict about a job or a step. The caller holds the lock of the job's row.
INSERT INTO windlass.verdicts (job_id, seq, edge, no, attempt, decision, rule, policy, reason, constraints, kernel, at)
SELECT :job_id::uuid, coalesce(max(v.seq), 0) + 1, :edge::text, :no::int, :attempt::int, :decision::text,
       :rule::text, :policy::bigint, :reason::text, :constraints::json, :kernel::text,
       windlass.clock()
FROM windlass.verdicts v WHERE v.job_id = :job_id::uuid

-- name: verdict_good
-- The newest verdict about the whole job. If it is not good ($2), the job keeps the number of its last good verdict.
-- `gate_tries` is not NULL while the policy holds steps of the job.
UPDATE windlass.jobs
SET policy = CASE WHEN $2::bool THEN $3 ELSE policy END, rule = CASE WHEN $2 THEN $4 ELSE rule END, gate_at = $5,
    gate_tries = CASE WHEN $2 THEN NULL WHEN $5::timestamptz IS NULL THEN 0 ELSE coalesce(gate_tries, 0) + 1 END,
    attempts_max = CASE WHEN $2 THEN $6 ELSE attempts_max END,
    deadline_at = least(deadline_at, windlass.clock() + make_interval(secs => $7)),
    due_at = least(due_at, windlass.clock() + make_interval(secs => $7))
WHERE id = $1

-- name: verdict_raise
-- Jobs whose verdict still holds under the policy $3; they are locked. Jobs with other things to change are not here.
-- Their time runs from their start.
UPDATE windlass.jobs j
SET policy = $3, rule = d.rule, attempts_max = d.attempts_max,
    deadline_at = least(j.deadline_at, coalesce(j.started_at, windlass.clock()) + make_interval(secs => d.runs_s)),
    due_at = least(j.due_at, coalesce(j.started_at, windlass.clock()) + make_interval(secs => d.runs_s))
FROM unnest($1::uuid[], $2::text[], $4::smallint[], $5::float8[]) AS d (id, rule, attempts_max, runs_s)
WHERE j.id = d.id AND j.finished_at IS NULL

-- name: verdict_limits
-- The constraints of the verdict under which the job goes on; NULL if it has none.
SELECT (
    SELECT v.constraints FROM windlass.verdicts v
    WHERE v.job_id = j.id AND v.no IS NULL AND v.policy = j.policy AND v.decision = 'allow_with_constraints'
    ORDER BY v.seq DESC LIMIT 1
) FROM windlass.jobs j WHERE j.id = $1

-- name: verdict_put_many
-- The limits of jobs that may go on. The caller holds the locks of the jobs.
INSERT INTO windlass.verdicts (job_id, seq, edge, decision, rule, policy, reason, constraints, at)
SELECT d.job_id, coalesce((SELECT max(v.seq) FROM windlass.verdicts v WHERE v.job_id = d.job_id), 0) + 1, 'claim',
       d.decision, d.rule, $5, d.reason, d.constraints, windlass.clock()
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $6::json[])
    AS d (job_id, decision, rule, reason, constraints)

-- name: verdict_now
SELECT no, floor, swept FROM windlass.policy_now

-- name: verdict_of_job
SELECT policy, rule FROM windlass.jobs WHERE id = $1

-- name: verdict_list
SELECT seq, edge, no, attempt, decision, rule, policy, subject, reason, constraints, kernel, at
FROM windlass.verdicts WHERE job_id = $1 ORDER BY seq

-- fragment: verdict_question
-- What the policy is asked about a job. The first event has the facts about its caller.
SELECT j.id, j.recipe, j.plan, j.state, j.caller, j.priority, j.depth, j.labels, j.input, j.policy, j.gate_at,
       j.gate_tries, j.bypassed_at, e.payload -> 'caller' AS asker,
       -- The rule that asked for the approval that the job waits for.
       CASE WHEN j.gate_tries = 0 THEN (
           SELECT v.rule FROM windlass.verdicts v
           WHERE v.job_id = j.id AND v.no IS NULL AND v.decision = 'require_approval' ORDER BY v.seq DESC LIMIT 1
       ) END AS waits_for,
       (SELECT row_to_json(c) FROM (
            SELECT c.caller_type, c.tier FROM windlass.callers c WHERE c.caller = j.caller
        ) AS c) AS known
FROM windlass.jobs j LEFT JOIN windlass.events e ON e.job_id = j.id AND e.seq = 1

-- name: verdict_questions
-- include: verdict_question
WHERE j.id = ANY ($1::uuid[]) AND j.finished_at IS NULL
ORDER BY j.id

-- name: verdict_stale
-- A page of open jobs whose good verdict is older than the floor, by the time at which the jobs are due. It starts after
-- the job ($1, $2), reads $3 jobs and returns the last one, so that one pass looks at every open job once. Throttled
-- jobs are left out: the policy is asked about them within ASK_MAX_S.
WITH page AS (
    SELECT id, due_at, CASE WHEN gate_at IS NULL THEN coalesce(policy, 0) END AS policy FROM windlass.jobs
    WHERE due_at IS NOT NULL AND (due_at > $1 OR due_at = $1 AND id > $2)
    ORDER BY due_at, id LIMIT $3
)
SELECT ARRAY(SELECT id FROM page WHERE policy < (SELECT windlass.policy_floor())) AS ids,
       (SELECT count(*) FROM page) AS looked, last.due_at, last.id
FROM (SELECT due_at, id FROM page ORDER BY due_at DESC, id DESC LIMIT 1) AS last

-- name: verdict_asked
-- Throttled jobs whose next question is due.
-- Jobs that wait for a kernel belong to the kernel asker.
SELECT id FROM windlass.jobs
WHERE gate_at <= windlass.clock() AND bypassed_at IS NULL
  AND (policy IS NOT NULL OR (SELECT kernel FROM windlass.policy_now) IS NULL)
ORDER BY gate_at LIMIT $1

-- name: verdict_due
-- The next question about a throttled job; now, while jobs may have verdicts that are too old.
SELECT least(
    (SELECT min(gate_at) FROM windlass.jobs
     WHERE gate_at IS NOT NULL AND bypassed_at IS NULL
       AND (policy IS NOT NULL OR (SELECT kernel FROM windlass.policy_now) IS NULL)),
    (SELECT windlass.clock() FROM windlass.policy_now WHERE swept < floor)
)

-- name: verdict_swept
-- Every open job was judged again under this floor.
UPDATE windlass.policy_now SET swept = $1 WHERE swept < $1
