-- Notices of waiting approvals to the installation's webhook (outbound/approval_sender.py).

-- name: notice_claim
-- Takes notices that are due, of approvals that are still open, for $2 seconds. $1 is the maximum number.
WITH mine AS (
    SELECT id FROM windlass.approvals
    WHERE notice_due_at <= windlass.clock() AND state = 'PENDING'
    ORDER BY notice_due_at, id LIMIT $1
    FOR UPDATE SKIP LOCKED
)
UPDATE windlass.approvals a
SET notice_attempt = a.notice_attempt + 1, notice_due_at = windlass.clock() + make_interval(secs => $2)
FROM mine m, windlass.jobs j
WHERE a.id = m.id AND j.id = a.job_id
RETURNING a.id, a.job_id, a.no, a.notice, a.notice_attempt, a.notice_failures, a.question, a.rule, a.reason,
          a.requester, a.need, a.who, a.created_at, a.expires_at, j.recipe, windlass.clock() AS now

-- name: notice_report
-- Records the result of one delivery. A report for a delivery that is not the last changes nothing. $4 is the time in
-- seconds until the next delivery, or NULL if there is none.
UPDATE windlass.approvals
SET notice_failures = $3, notice_due_at = windlass.clock() + make_interval(secs => $4::float8), notice_error = $5
WHERE id = $1 AND notice_attempt = $2 AND state = 'PENDING'

-- name: notice_next
-- The seconds until the next notice is due; NULL if none is.
SELECT extract(epoch FROM min(notice_due_at) - windlass.clock())::float8 FROM windlass.approvals
WHERE notice_due_at IS NOT NULL
