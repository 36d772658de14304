-- The audit: notes as they arrive, and the hash chain of records made from them.

-- name: audit_note
INSERT INTO windlass.audit_notes (at, event, caller, payload) VALUES (windlass.clock(), $1, $2, $3)

-- name: audit_note_many
INSERT INTO windlass.audit_notes (at, event, caller, payload)
SELECT windlass.clock(), n.event, n.caller, n.payload
FROM unnest($1::text[], $2::text[], $3::json[]) AS n (event, caller, payload)

-- name: audit_lock
-- Held until the end of the transaction, so that one writer at a time appends to the chain. Other writers give up.
SELECT pg_try_advisory_xact_lock(7235938472216)

-- name: audit_take_notes
-- Deletes notes in the commit that makes them records.
DELETE FROM windlass.audit_notes n
USING (SELECT id FROM windlass.audit_notes ORDER BY id LIMIT $1) AS some_notes
WHERE n.id = some_notes.id
RETURNING n.id, n.at, n.event, n.caller, n.payload

-- name: audit_tail
SELECT no, hash FROM windlass.audit ORDER BY no DESC LIMIT 1

-- name: audit_known
-- The existing records of these jobs. A follower may read events twice, after a restore lost its cursor, but must not
-- record them twice.
SELECT a.job_id, a.event FROM unnest($1::uuid[]) AS d (job_id)
CROSS JOIN LATERAL (SELECT a.job_id, a.event FROM windlass.audit a WHERE a.job_id = d.job_id) AS a

-- name: audit_errors
-- The errors of jobs. An event contains the error only if the job stopped at its first failure.
SELECT id, state, error FROM windlass.jobs WHERE id = ANY ($1::uuid[]) AND error IS NOT NULL

-- name: audit_append
INSERT INTO windlass.audit (no, at, event, caller, caller_type, tier, job_id, request_id, payload, hash)
SELECT * FROM unnest(:no::bigint[], :at::timestamptz[], :event::text[], :caller::text[], :caller_type::text[],
       :tier::text[], :job_id::uuid[],
                     :request_id::text[], :payload::json[], :hash::bytea[])

-- name: audit_tally
INSERT INTO windlass.tallies AS t (recipe, state, count, seconds)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::float8[])
ON CONFLICT (recipe, state) DO UPDATE SET count = t.count + excluded.count, seconds = t.seconds + excluded.seconds

-- name: audit_minutes
INSERT INTO windlass.minutes AS m (minute, recipe, state, length, count)
SELECT * FROM unnest($1::timestamptz[], $2::text[], $3::text[], $4::smallint[], $5::int[])
ON CONFLICT (minute, recipe, state, length) DO UPDATE SET count = m.count + excluded.count

-- name: minutes_forget
DELETE FROM windlass.minutes WHERE minute < windlass.clock() - interval '2 hours'

-- name: audit_page
-- $1 is the record to start after, $2 the number of rows; $3 to $7 are caller, event, job, since and until, each NULL
-- for any. Each index has its own statement, because an optional condition would keep the planner from all of them.
SELECT * FROM windlass.audit
WHERE no > $1
  AND ($3::text IS NULL OR caller = $3) AND ($4::text IS NULL OR event = $4) AND ($5::uuid IS NULL OR job_id = $5)
  AND ($6::timestamptz IS NULL OR at >= $6) AND ($7::timestamptz IS NULL OR at < $7)
ORDER BY no LIMIT $2

-- name: audit_page_caller
SELECT * FROM windlass.audit
WHERE caller = $3 AND no > $1
  AND ($4::text IS NULL OR event || '' = $4) AND ($5::uuid IS NULL OR job_id = $5)
  AND ($6::timestamptz IS NULL OR at >= $6) AND ($7::timestamptz IS NULL OR at < $7)
ORDER BY caller, no LIMIT $2

-- name: audit_page_event
SELECT * FROM windlass.audit
WHERE event = $4 AND no > $1
  AND ($3::text IS NULL OR caller || '' = $3) AND ($5::uuid IS NULL OR job_id = $5)
  AND ($6::timestamptz IS NULL OR at >= $6) AND ($7::timestamptz IS NULL OR at < $7)
ORDER BY event, no LIMIT $2

-- name: audit_page_job
-- A job has few records: its index finds them, and then they are sorted.
SELECT * FROM (SELECT * FROM windlass.audit WHERE job_id = $5 OFFSET 0) AS of_job
WHERE no > $1
  AND ($3::text IS NULL OR caller = $3) AND ($4::text IS NULL OR event = $4)
  AND ($6::timestamptz IS NULL OR at >= $6) AND ($7::timestamptz IS NULL OR at < $7)
ORDER BY no LIMIT $2

-- name: audit_newest
-- Reads backwards: $1 is the record to start before. Caller, event and job are never given here. As conditions, they
-- would make a planner with skip scans expect so few rows that it reads and sorts all of them.
SELECT * FROM windlass.audit
WHERE no < $1
  AND ($3::text IS NULL OR true) AND ($4::text IS NULL OR true) AND ($5::uuid IS NULL OR true)
  AND ($6::timestamptz IS NULL OR at >= $6) AND ($7::timestamptz IS NULL OR at < $7)
ORDER BY no DESC LIMIT $2

-- name: audit_newest_caller
SELECT * FROM windlass.audit
WHERE caller = $3 AND no < $1
  AND ($4::text IS NULL OR event || '' = $4) AND ($5::uuid IS NULL OR job_id = $5)
  AND ($6::timestamptz IS NULL OR at >= $6) AND ($7::timestamptz IS NULL OR at < $7)
ORDER BY caller DESC, no DESC LIMIT $2

-- name: audit_newest_event
SELECT * FROM windlass.audit
WHERE event = $4 AND no < $1
  AND ($3::text IS NULL OR caller || '' = $3) AND ($5::uuid IS NULL OR job_id = $5)
  AND ($6::timestamptz IS NULL OR at >= $6) AND ($7::timestamptz IS NULL OR at < $7)
ORDER BY event DESC, no DESC LIMIT $2

-- name: audit_newest_job
SELECT * FROM (SELECT * FROM windlass.audit WHERE job_id = $5 OFFSET 0) AS of_job
WHERE no < $1
  AND ($3::text IS NULL OR caller = $3) AND ($4::text IS NULL OR event = $4)
  AND ($6::timestamptz IS NULL OR at >= $6) AND ($7::timestamptz IS NULL OR at < $7)
ORDER BY no DESC LIMIT $2

-- name: audit_has_head
-- Whether a noted hash is among the records up to $1, which were checked before.
SELECT EXISTS (SELECT FROM windlass.audit WHERE no <= $1 AND hash = $2)
