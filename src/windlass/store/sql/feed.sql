-- The events of all jobs in the order of the transactions that wrote them (engine/feed.py, docs/decisions/feed.md).
--
-- A read stays below the oldest transaction that is still in progress. All transactions below it have ended, so nothing
-- can appear there later. Every statement repeats the condition of the index events_feed.

-- name: feed_page
-- $1 to $3 are the position, $4 the horizon (NULL: the horizon of this snapshot), $5 the callers or NULL, $6 how many
-- rows to read. The first columns say how far the statement read, over the rows of all callers. No row means no events.
WITH page AS MATERIALIZED (
    SELECT e.txid, e.job_id, e.seq, e.at, e.type, e.no, e.attempt, e.payload, e.correlation_id
    FROM windlass.events e
    WHERE (e.txid, e.job_id, e.seq) > ($1::text::xid8, $2::uuid, $3::int)
      AND e.txid < coalesce($4::text::xid8, pg_snapshot_xmin(pg_current_snapshot()))
      AND e.txid IS NOT NULL AND e.correlation_id IS NOT NULL AND (e.no IS NULL OR e.type = 'step.progress')
    ORDER BY e.txid, e.job_id, e.seq LIMIT $6
), last AS MATERIALIZED (
    SELECT p.txid, p.job_id, p.seq, (SELECT count(*) FROM page) AS looked,
           (SELECT bool_or(c.type IN ('job.submitted', 'job.processing')) FROM page c) AS is_ahead,
           (SELECT min(f.txid) FROM page f) AS first_txid
    FROM page p ORDER BY p.txid DESC, p.job_id DESC, p.seq DESC LIMIT 1
)
SELECT last.txid::text AS last_txid, last.job_id AS last_job, last.seq AS last_seq, last.looked, last.is_ahead,
       last.first_txid::text AS first_txid,
       coalesce($4, pg_snapshot_xmin(pg_current_snapshot())::text) AS horizon,
       m.txid::text AS txid, m.job_id, m.seq, m.at, m.type, m.no, m.attempt, m.payload, m.correlation_id,
       m.caller, m.recipe, m.labels, m.state, m.step_state, m.progress, m.created_at, m.started_at, m.finished_at
FROM last LEFT JOIN LATERAL (
    SELECT p.*, j.caller, j.recipe, j.labels, j.state, j.progress, j.created_at, j.started_at, j.finished_at,
           CASE WHEN p.no IS NOT NULL THEN (
               SELECT s.state FROM windlass.steps s WHERE s.job_id = p.job_id AND s.no = p.no
           ) END AS step_state
    -- OFFSET 0 looks up the jobs one by one, for any statistics: the callers' index would return all of their jobs.
    FROM page p CROSS JOIN LATERAL (SELECT * FROM windlass.jobs k WHERE k.id = p.job_id OFFSET 0) AS j
    WHERE $5::text[] IS NULL OR j.caller = ANY ($5)
) AS m ON true
ORDER BY m.txid, m.job_id, m.seq

-- name: feed_torn
-- Finds jobs with an event between a position ($1 to $3) and a cut ($4), and an earlier event, by sequence number,
-- beyond the cut. Returns the lowest transaction that wrote such an event before the cut. It starts beyond the cut,
-- where few events are.
SELECT min(e.txid)::text
FROM windlass.events p
CROSS JOIN LATERAL (
    SELECT e.txid FROM windlass.events e
    WHERE e.job_id = p.job_id AND e.seq > p.seq
      AND e.txid < $4::text::xid8 AND (e.txid, e.job_id, e.seq) > ($1::text::xid8, $2::uuid, $3::int)
      AND e.correlation_id IS NOT NULL AND (e.no IS NULL OR e.type = 'step.progress')
) AS e
WHERE p.txid >= $4::text::xid8
  AND p.txid IS NOT NULL AND p.correlation_id IS NOT NULL AND (p.no IS NULL OR p.type = 'step.progress')

-- name: feed_torn_behind
-- Answers as feed_torn, for a cut with many events beyond it: it starts with the jobs before the cut.
SELECT min(e.txid)::text
FROM (
    SELECT b.job_id, max(b.seq) AS seq FROM windlass.events b
    WHERE (b.txid, b.job_id, b.seq) > ($1::text::xid8, $2::uuid, $3::int) AND b.txid < $4::text::xid8
      AND b.txid IS NOT NULL AND b.correlation_id IS NOT NULL AND (b.no IS NULL OR b.type = 'step.progress')
    GROUP BY b.job_id
) AS t
CROSS JOIN LATERAL (
    SELECT min(o.seq) AS seq
    -- OFFSET 0 keeps the planner from events_feed, which would read every event beyond the cut, for each job.
    FROM (SELECT * FROM windlass.events o WHERE o.job_id = t.job_id AND o.seq < t.seq OFFSET 0) AS o
    WHERE o.txid >= $4::text::xid8 AND o.correlation_id IS NOT NULL AND (o.no IS NULL OR o.type = 'step.progress')
) AS p
CROSS JOIN LATERAL (
    SELECT o.txid
    FROM (SELECT * FROM windlass.events o WHERE o.job_id = t.job_id AND o.seq > p.seq OFFSET 0) AS o
    WHERE o.txid < $4::text::xid8 AND (o.txid, o.job_id, o.seq) > ($1::text::xid8, $2::uuid, $3::int)
      AND o.correlation_id IS NOT NULL AND (o.no IS NULL OR o.type = 'step.progress')
) AS e

-- name: feed_horizon
SELECT pg_snapshot_xmin(pg_current_snapshot())::text

-- name: feed_of_jobs
-- Events of some jobs, each job after its own sequence number.
SELECT w.job_id, e.seq, e.at, e.type, e.source, e.no, e.attempt, e.payload, e.correlation_id, e.idempotency_key,
       w.job_state, CASE WHEN e.payload IS NOT NULL AND e.type <> 'step.running' THEN (
           SELECT s.state FROM windlass.steps s WHERE s.job_id = w.job_id AND s.no = e.no
       ) END AS step_state
FROM (
    SELECT u.job_id, u.seq, (SELECT j.state FROM windlass.jobs j WHERE j.id = u.job_id) AS job_state
    FROM unnest($1::uuid[], $2::int[]) AS u (job_id, seq) OFFSET 0
) AS w
CROSS JOIN LATERAL (
    SELECT * FROM windlass.events e WHERE e.job_id = w.job_id AND e.seq > w.seq ORDER BY e.seq LIMIT $3
) AS e
ORDER BY w.job_id, e.seq

-- name: cursor_get
SELECT txid::text AS txid, job_id, seq FROM windlass.cursors WHERE name = $1

-- name: cursor_put
INSERT INTO windlass.cursors (name, txid, job_id, seq) VALUES ($1, $2::text::xid8, $3, $4)
ON CONFLICT (name) DO UPDATE SET txid = excluded.txid, job_id = excluded.job_id, seq = excluded.seq
