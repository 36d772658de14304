-- Webhooks to clients about the end of a job. States: WAITING for the job, DUE, then DELIVERED or DEAD.

-- name: webhook_put
-- Runs in the transaction that creates the jobs, and only for jobs that it created. $1 are the jobs, $2 their callers,
-- $3 URLs that passed `Sender.check`, $4 sealed secrets: `Secret.seal(parse_secret(text))`. A job with a webhook must
-- have a correlation id, because the webhook scheduler learns of its end from the feed, which contains only such jobs.
INSERT INTO windlass.webhooks (job_id, caller, url, secret, state, created_at)
SELECT d.job_id, d.caller, d.url, d.secret, 'WAITING', windlass.clock()
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[]) AS d (job_id, caller, url, secret)
ON CONFLICT DO NOTHING

-- name: webhook_schedule
-- A webhook scheduler that finds the cursor locked gives up: another webhook scheduler is working. The cursor moves in
-- the commit that makes the rows due. That commit waits for the disk, and so for all earlier commits: a crash cannot
-- undo an event that the cursor has passed.
WITH mark AS (
    SELECT c.txid, c.job_id, c.seq FROM windlass.cursors c WHERE c.name = 'webhook_scheduler' FOR UPDATE SKIP LOCKED
), told AS (
    SELECT e.txid, e.job_id, e.seq, e.type
    FROM mark m, LATERAL (
        SELECT e.txid, e.job_id, e.seq, e.type FROM windlass.events e
        WHERE (e.txid, e.job_id, e.seq) > (m.txid, m.job_id, m.seq)
          AND e.txid < pg_snapshot_xmin(pg_current_snapshot())
          AND e.txid IS NOT NULL AND e.correlation_id IS NOT NULL AND (e.no IS NULL OR e.type = 'step.progress')
        ORDER BY e.txid, e.job_id, e.seq LIMIT $1
    ) e
), due AS (
    UPDATE windlass.webhooks w SET state = 'DUE', due_at = windlass.clock()
    FROM told t
    WHERE w.job_id = t.job_id AND w.state = 'WAITING' AND t.type = ANY ($2::text[])
    RETURNING w.job_id
), moved AS (
    UPDATE windlass.cursors c SET txid = l.txid, job_id = l.job_id, seq = l.seq
    FROM (SELECT t.txid, t.job_id, t.seq FROM told t ORDER BY t.txid DESC, t.job_id DESC, t.seq DESC LIMIT 1) l
    WHERE c.name = 'webhook_scheduler'
)
SELECT EXISTS (SELECT FROM windlass.cursors c WHERE c.name = 'webhook_scheduler') AS is_begun,
       (SELECT count(*) FROM told) AS told, (SELECT count(*) FROM due) AS due

-- name: webhook_schedule_begin
-- Runs the first time, and after a restore into another cluster, where the old transaction ids mean nothing. Jobs that
-- have ended in this snapshot become due here; the ends of all other jobs lie ahead of the new cursor.
WITH mark AS (
    INSERT INTO windlass.cursors (name, txid, job_id, seq)
    VALUES ('webhook_scheduler', pg_snapshot_xmin(pg_current_snapshot()), '00000000-0000-0000-0000-000000000000', 0)
    ON CONFLICT DO NOTHING
    RETURNING name
), due AS (
    UPDATE windlass.webhooks w SET state = 'DUE', due_at = windlass.clock()
    FROM windlass.jobs j, mark
    WHERE j.id = w.job_id AND w.state = 'WAITING' AND j.finished_at IS NOT NULL
    RETURNING w.job_id
)
SELECT 0 AS told, (SELECT count(*) FROM due) AS due

-- name: webhook_claim
-- $1 is the maximum number of rows, $2 the lease in seconds. $3 are the hosts that this sender is sending to, $4 the
-- requests to each, $5 the maximum per host; $6 to $8 are the same for callers. Rows of a host or a caller at its
-- maximum are skipped, so slow receivers delay only their own caller. Callers take turns: the caller with the fewest
-- requests in progress goes first. Candidates are read without a lock, because a window function cannot lock rows; the
-- first transaction that locks a row gets it.
WITH busy AS (
    SELECT b.host, b.count FROM unnest($3::text[], $4::int[]) AS b (host, count)
), callers AS (
    SELECT b.caller, b.count FROM unnest($6::text[], $7::int[]) AS b (caller, count)
), near AS (
    SELECT w.job_id, w.host, w.caller, w.due_at FROM windlass.webhooks w
    WHERE w.state = 'DUE' AND w.due_at <= windlass.clock()
      AND w.host <> ALL (ARRAY(SELECT b.host FROM busy b WHERE b.count >= $5::int))
      AND w.caller <> ALL (ARRAY(SELECT c.caller FROM callers c WHERE c.count >= $8::int))
    ORDER BY w.due_at LIMIT 500
), placed AS (
    SELECT n.*, row_number() OVER (PARTITION BY n.host ORDER BY n.due_at, n.job_id) AS place FROM near n
), room AS (
    SELECT p.job_id, p.due_at, coalesce(c.count, 0) + row_number() OVER (
               PARTITION BY p.caller ORDER BY p.due_at, p.job_id
           ) AS turn
    FROM placed p
    LEFT JOIN busy b ON b.host = p.host
    LEFT JOIN callers c ON c.caller = p.caller
    WHERE p.place + coalesce(b.count, 0) <= $5::int
), chosen AS (
    SELECT r.job_id FROM room r WHERE r.turn <= $8::int ORDER BY r.turn, r.due_at, r.job_id LIMIT $1
), mine AS (
    SELECT w.job_id FROM windlass.webhooks w
    WHERE w.job_id = ANY (ARRAY(SELECT c.job_id FROM chosen c)) AND w.state = 'DUE' AND w.due_at <= windlass.clock()
    FOR UPDATE SKIP LOCKED
)
UPDATE windlass.webhooks w
SET attempt = w.attempt + 1, due_at = windlass.clock() + make_interval(secs => $2)
FROM mine m, windlass.jobs j
WHERE w.job_id = m.job_id AND j.id = w.job_id
RETURNING w.job_id, w.caller, w.url, w.host, w.secret, w.attempt, w.failures, windlass.clock() AS now,
          j.recipe, j.state, j.labels, j.error, j.created_at, j.finished_at

-- name: webhook_report
-- Reports the result of one delivery. A report for a delivery that is not the last changes nothing. The same commit
-- adds an audit note for a dead webhook. $8 is the time in seconds until the next delivery.
WITH told AS (
    UPDATE windlass.webhooks w
    SET state = $3, failures = $4, answer = $5, error = $6,
        due_at = CASE WHEN $3 = 'DUE' THEN windlass.clock() + make_interval(secs => $8) END,
        ended_at = CASE WHEN $3 <> 'DUE' THEN windlass.clock() END
    WHERE w.job_id = $1 AND w.attempt = $2 AND w.state = 'DUE'
    RETURNING w.caller, w.state
), noted AS (
    INSERT INTO windlass.audit_notes (at, event, caller, payload)
    SELECT windlass.clock(), 'webhook_dead', t.caller, $7::json FROM told t WHERE t.state = 'DEAD'
)
SELECT count(*) FROM told

-- name: webhook_next
-- The seconds until the next webhook is due; NULL if none is.
SELECT extract(epoch FROM min(due_at) - windlass.clock())::float8 FROM windlass.webhooks WHERE state = 'DUE'

-- name: webhook_get
SELECT job_id, url, state, attempt, failures, due_at, answer, error, created_at, ended_at
FROM windlass.webhooks WHERE job_id = $1

-- name: webhook_redeliver
-- Restarts the schedule. The delivery numbers continue, so that a late report of an earlier delivery changes nothing.
UPDATE windlass.webhooks SET state = 'DUE', due_at = windlass.clock(), failures = 0, ended_at = NULL
WHERE job_id = $1 AND state <> 'WAITING'
RETURNING job_id
