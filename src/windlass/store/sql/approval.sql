-- Approvals and their votes. Every statement that changes an approval runs under the lock of its job's row.

-- name: approval_facts
-- The rows that a step's approval is about. The caller holds the locks of the jobs.
SELECT j.id, j.caller, j.input, j.labels FROM windlass.jobs j WHERE j.id = ANY ($1::uuid[])

-- name: approval_now
SELECT windlass.clock()

-- name: approval_told
-- The event of a request about a job that this transaction made. The job's default time to live begins to count when
-- people have decided: it grows by the time that they have ($4, in seconds).
WITH counted AS (
    UPDATE windlass.jobs
    SET event_seq = event_seq + 1,
        expires_at = CASE WHEN is_ttl_default THEN expires_at + make_interval(secs => $4) ELSE expires_at END,
        due_at = CASE WHEN is_ttl_default THEN least(deadline_at, expires_at + make_interval(secs => $4)) ELSE due_at END
    WHERE id = $1 RETURNING id, event_seq, correlation_id
)
INSERT INTO windlass.events (job_id, seq, at, type, source, payload, correlation_id)
SELECT id, event_seq, windlass.clock(), 'approval.requested', $2, $3::json, correlation_id FROM counted

-- name: approval_put
INSERT INTO windlass.approvals
    (id, job_id, no, attempt, edge, subject, arguments, constraints, policy, rule, rule_hash, reason, question,
     on_reject, requester, need, who, created_at, expires_at, escalate_at, state, due_at, notice, notice_due_at)
VALUES (:id, :job_id, :no, :attempt, :edge, :subject, :arguments::json, :constraints::json, :policy::bigint, :rule,
        :rule_hash, :reason, :question, :on_reject, :requester, :need, :who::json, windlass.clock(), :expires_at,
        :escalate_at, 'PENDING', :due_at, 'requested', windlass.clock())

-- name: approval_clear
-- The jobs have ended, so nobody can decide about them any more.
UPDATE windlass.approvals
SET state = 'INVALIDATED', decided_at = windlass.clock(), due_at = NULL, notice_due_at = NULL
WHERE job_id = ANY ($1::uuid[]) AND state IN ('PENDING', 'APPROVED')

-- name: approval_leave
-- The steps no longer wait. An approval that a vote has decided has its final state already.
UPDATE windlass.approvals a
SET state = d.state, decided_at = windlass.clock(), due_at = NULL, notice_due_at = NULL
FROM unnest($1::uuid[], $2::int[], $3::text[]) AS d (job_id, no, state)
WHERE a.job_id = d.job_id AND a.no = d.no AND a.state IN ('PENDING', 'APPROVED')

-- name: approval_standing
-- The approvals of whole jobs that are open or used, the newest first.
SELECT id, job_id, state, subject, rule_hash, constraints FROM windlass.approvals
WHERE job_id = ANY ($1::uuid[]) AND no IS NULL AND state IN ('PENDING', 'APPROVED', 'USED')
ORDER BY id DESC

-- name: approval_end
-- The policy asks for these approvals of whole jobs no more. An approval that people gave is kept while the policy
-- only wants to wait ($2).
UPDATE windlass.approvals
SET state = 'INVALIDATED', decided_at = windlass.clock(), due_at = NULL, notice_due_at = NULL
WHERE job_id = ANY ($1::uuid[]) AND no IS NULL AND (state = 'PENDING' OR state = 'APPROVED' AND NOT $2::bool)

-- name: approval_patience
-- A vote waits at most this long for a job that another transaction holds.
SELECT set_config('lock_timeout', $1, true)

-- name: approval_job
SELECT job_id FROM windlass.approvals WHERE id = $1

-- name: approval_locked
-- An approval with everything that a vote needs.
SELECT a.id, a.job_id, a.no, a.edge, a.subject, a.arguments, a.constraints, a.policy, a.rule, a.rule_hash, a.question,
       a.on_reject, a.requester, a.need, a.who, a.state, a.created_at, a.expires_at, j.state AS job_state, j.plan,
       j.caller, j.input, j.labels, s.node, s.index, windlass.clock() AS now, windlass.callers_above(a.job_id) AS above
-- include: approval_joined
WHERE a.id = $1

-- name: approval_decide
UPDATE windlass.approvals
SET state = $2, decided_at = windlass.clock(), due_at = NULL, notice_due_at = NULL
WHERE id = $1 AND state IN ('PENDING', 'APPROVED')
RETURNING id

-- name: approval_overdue
SELECT id, job_id FROM windlass.approvals
WHERE state = 'PENDING' AND due_at <= windlass.clock()
ORDER BY due_at, id LIMIT $1

-- name: approval_escalate
-- More people may vote from now on, and they are told.
UPDATE windlass.approvals
SET escalated_at = windlass.clock(), due_at = $2, notice = 'escalated', notice_due_at = windlass.clock(),
    notice_failures = 0
WHERE id = $1 AND state = 'PENDING' AND escalated_at IS NULL
RETURNING id

-- fragment: approval_joined
FROM windlass.approvals a
JOIN windlass.jobs j ON j.id = a.job_id
LEFT JOIN windlass.steps s ON s.job_id = a.job_id AND s.no = a.no

-- fragment: approval_shown
a.id, a.job_id, a.no, a.edge, a.subject, a.arguments, a.policy, a.rule, a.reason, a.question, a.on_reject, a.requester,
a.need, a.who, a.state, a.created_at, a.expires_at, a.escalate_at, a.escalated_at, a.decided_at,
j.state AS job_state, j.recipe, j.plan, j.labels, j.input, s.node, s.index, s.state AS step_state,
windlass.clock() AS now, windlass.callers_above(a.job_id) AS above,

-- name: approval_get
SELECT
       -- include: approval_shown
       j.deleted_at
-- include: approval_joined
WHERE a.id = $1

-- name: approval_page
-- All requests in these states, or in any, the newest first, before the place $1. An id begins with its time.
SELECT
       -- include: approval_shown
       j.deleted_at
FROM (
    SELECT * FROM windlass.approvals
    WHERE id < $1::uuid AND (cardinality($2::text[]) = 0 OR state = ANY ($2::text[]))
    ORDER BY id DESC LIMIT $3
) a
JOIN windlass.jobs j ON j.id = a.job_id
LEFT JOIN windlass.steps s ON s.job_id = a.job_id AND s.no = a.no
ORDER BY a.id DESC

-- name: approval_of_job
SELECT
       -- include: approval_shown
       j.deleted_at
-- include: approval_joined
WHERE a.job_id = $1
ORDER BY a.id DESC LIMIT $2

-- name: approval_why
-- What an open approval lacks, for the sentence that explains the wait.
SELECT a.id, a.need, a.who, a.question, a.rule, a.expires_at,
       (SELECT count(*) FROM windlass.votes v WHERE v.approval_id = a.id AND v.choice = 'approve') AS given
FROM windlass.approvals a
WHERE a.job_id = $1 AND a.no IS NOT DISTINCT FROM $2 AND a.state IN ('PENDING', 'APPROVED')
