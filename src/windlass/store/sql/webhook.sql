-- Where a job's end is told, and how far that has come: WAITING for the job, DUE, then DELIVERED or DEAD.

-- name: webhook_put
-- In the transaction that makes the jobs, and only for jobs that it made. $1 jobs, $2 their callers, $3 URLs that
-- `Sender.check` let pass, $4 sealed secrets: `Secret.seal(parse_secret(text))`. A job with a webhook must have a
-- correlation id: the herald learns of its end from the feed, and the feed has only such jobs.
INSERT INTO windlass.webhooks (job_id, caller, url, secret, state, created_at)
SELECT d.job_id, d.caller, d.url, d.secret, 'WAITING', windlass.clock()
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[]) AS d (job_id, caller, url, secret)
ON CONFLICT DO NOTHING

-- name: herald_look
-- Whoever finds the cursor held leaves it: another herald is at it. The cursor moves in the commit that makes the rows
-- due. That commit waits for the disk, and with it for whatever was committed before: a crash cannot undo what the
-- cursor has passed.
WITH mark AS (
    SELECT c.txid, c.job_id, c.seq FROM windlass.cursors c WHERE c.name = 'herald' FOR UPDATE SKIP LOCKED
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
    WHERE c.name = 'herald'
)
SELECT EXISTS (SELECT FROM windlass.cursors c WHERE c.name = 'herald') AS is_begun,
       (SELECT count(*) FROM told) AS told, (SELECT count(*) FROM due) AS due

-- name: herald_begin
-- The first time, and after a restore into another cluster, where the old transaction numbers mean nothing: whatever
-- this snapshot knows to have ended is made due here, and whatever it does not know is still ahead of the new cursor.
WITH mark AS (
    INSERT INTO windlass.cursors (name, txid, job_id, seq)
    VALUES ('herald', pg_snapshot_xmin(pg_current_snapshot()), '00000000-0000-0000-0000-000000000000', 0)
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
-- $1 at most this many, $2 the lease in seconds; $3 hosts that this courier is sending to, $4 how many requests to each,
-- $5 how many it may send to a host at a time; $6 to $8 the same for callers. Rows of a host or a caller without a free
-- place are passed over, so slow receivers hold up their own caller only. Callers take turns: the one with the fewest
-- requests under way goes first. Candidates are read without a lock, as a window cannot be locked; whoever locks them
-- first has them.
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
-- What came of one try. A report for a try that is not the last one changes nothing. What died is noted for the audit
-- in the same commit. $8 seconds until the next try.
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
-- In how many seconds the next one is due; NULL when none is.
SELECT extract(epoch FROM min(due_at) - windlass.clock())::float8 FROM windlass.webhooks WHERE state = 'DUE'

-- name: webhook_get
SELECT job_id, url, state, attempt, failures, due_at, answer, error, created_at, ended_at
FROM windlass.webhooks WHERE job_id = $1

-- name: webhook_redeliver
-- The schedule begins anew; the numbers of tries go on, so that a late report of an earlier one still changes nothing.
UPDATE windlass.webhooks SET state = 'DUE', due_at = windlass.clock(), failures = 0, ended_at = NULL
WHERE job_id = $1 AND state <> 'WAITING'
RETURNING job_id
