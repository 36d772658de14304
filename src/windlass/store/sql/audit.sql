-- What was done, by whom: notes as they come, and the chain that they become.

-- name: audit_note
INSERT INTO windlass.audit_notes (at, event, caller, payload) VALUES (windlass.clock(), $1, $2, $3)

-- name: audit_note_many
INSERT INTO windlass.audit_notes (at, event, caller, payload)
SELECT windlass.clock(), n.event, n.caller, n.payload
FROM unnest($1::text[], $2::text[], $3::json[]) AS n (event, caller, payload)

-- name: audit_lock
-- Held to the end of the transaction: one writer appends to the chain at a time. Whoever does not get it goes away.
SELECT pg_try_advisory_xact_lock(7235938472216)

-- name: audit_take_notes
-- A note goes in the commit that makes it a record.
DELETE FROM windlass.audit_notes n
USING (SELECT id FROM windlass.audit_notes ORDER BY id LIMIT $1) AS some_notes
WHERE n.id = some_notes.id
RETURNING n.id, n.at, n.event, n.caller, n.payload

-- name: audit_tail
SELECT no, hash FROM windlass.audit ORDER BY no DESC LIMIT 1

-- name: audit_known
-- Which of these jobs' records are there already. What a follower reads twice (its cursor was lost in a restore) must
-- not be recorded twice.
SELECT a.job_id, a.event FROM unnest($1::uuid[]) AS d (job_id)
CROSS JOIN LATERAL (SELECT a.job_id, a.event FROM windlass.audit a WHERE a.job_id = d.job_id) AS a

-- name: audit_errors
-- Why jobs failed: an event has it only when the job stopped at its first failure.
SELECT id, state, error FROM windlass.jobs WHERE id = ANY ($1::uuid[]) AND error IS NOT NULL

-- name: audit_append
INSERT INTO windlass.audit (no, at, event, caller, caller_type, tier, job_id, request_id, payload, hash)
SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::uuid[],
                     $8::text[], $9::json[], $10::bytea[])

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
-- $1 after which record, $2 how many; $3 to $7 are caller, event, job, since, until, each NULL for any. One statement
-- per index: a condition that may be absent would keep the planner from all of them.
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
-- A job has few records: they are found by its index, then sorted.
SELECT * FROM (SELECT * FROM windlass.audit WHERE job_id = $5 OFFSET 0) AS of_job
WHERE no > $1
  AND ($3::text IS NULL OR caller = $3) AND ($4::text IS NULL OR event = $4)
  AND ($6::timestamptz IS NULL OR at >= $6) AND ($7::timestamptz IS NULL OR at < $7)
ORDER BY no LIMIT $2

-- name: audit_newest
-- The same backwards: $1 is before which record. Here caller, event and job are never given; were they conditions, a
-- planner that skips through indexes would take so few rows for granted that it reads and sorts them all.
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
-- Whether a hash that was noted is among the records up to $1, which were looked at before.
SELECT EXISTS (SELECT FROM windlass.audit WHERE no <= $1 AND hash = $2)
