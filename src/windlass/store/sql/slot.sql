-- Slots: the rows of steps that wait for resources or hold them (store/slots.py), and the order in which the granter
-- grants them (engine/loops/granter.py).
--
-- Columns that are read as a `Slot` (core/slot.py) have its order.
--
-- The table is often empty, and PostgreSQL keeps a plan that was made then. So a row is looked up by its key in a
-- subquery with a limit, which PostgreSQL can only run row by row. A join could be reversed, and read all waiting rows.

-- name: slot_lock
-- The rows before they change, locked in the order that every transaction uses.
SELECT s.*
FROM unnest($1::uuid[], $2::int[]) AS d (job_id, no)
CROSS JOIN LATERAL (
    SELECT s.job_id, s.no, s.fence, s.provider, s.places, s.key, s.most, s.takes, s.cost, s.caller, s.recipe, s.jobs,
           s.state
    FROM windlass.slots s
    WHERE s.job_id = d.job_id AND s.no = d.no LIMIT 1 FOR UPDATE
) AS s

-- name: slot_lock_all
-- The rows of all steps of ended jobs, locked in the same order.
SELECT s.job_id, s.no, s.fence, s.provider, s.places, s.key, s.most, s.takes, s.cost, s.caller, s.recipe, s.jobs,
       s.state
FROM windlass.slots s WHERE s.job_id = ANY($1::uuid[]) ORDER BY s.job_id, s.no FOR UPDATE

-- name: slot_write
-- Inserts, updates and deletes rows; a row without a state is deleted. $1 to $9 are the rows, $10 and $11 the changes
-- that the granter must check. Returns the new rows that are HELD.
--
-- A row with a key waits behind its key and has no turn yet (-1). A row without a key gets its turn now: the turn of
-- the first row in line, so that the age of the jobs decides. If keys take turns, the rows without a key count as one
-- key.
WITH want AS MATERIALIZED (
    SELECT *
    FROM unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::int[], $7::numeric[], $8::int[], $9::int[])
        AS d (job_id, no, state, provider, key, most, cost, places, takes)
), gone AS (
    DELETE FROM windlass.slots WHERE ctid = ANY (ARRAY(
        SELECT s.ctid FROM want w
        CROSS JOIN LATERAL (
            SELECT s.ctid FROM windlass.slots s WHERE s.job_id = w.job_id AND s.no = w.no LIMIT 1
        ) AS s
        WHERE w.state IS NULL
    ))
), joined AS MATERIALIZED (
    SELECT w.*, j.priority, j.caller, j.recipe, j.jobs, w.state = 'WAITING' AND w.key = '' AND w.provider <> '' AS is_free
    FROM want w
    CROSS JOIN LATERAL (
        SELECT j.priority, j.caller, j.recipe,
               CASE WHEN j.parent_job IS NULL THEN ARRAY[j.id::text] ELSE windlass.lineage(j.id) END AS jobs
        FROM windlass.jobs j WHERE j.id = w.job_id LIMIT 1
    ) AS j
    WHERE w.state IS NOT NULL
), line AS MATERIALIZED (
    -- Once per line: the index still contains rows that left the line, until it is vacuumed.
    SELECT g.provider, g.priority, coalesce((
               SELECT s.turn FROM windlass.slots s
               WHERE s.state = 'WAITING' AND s.behind IS NULL AND s.provider = g.provider AND s.priority = g.priority
               ORDER BY s.turn LIMIT 1
           ), 0) AS first,
           (
               SELECT max(s.turn) + 1 FROM windlass.slots s
               WHERE s.state = 'WAITING' AND s.provider = g.provider AND s.priority = g.priority AND s.key = ''
           ) AS last,
           EXISTS (
               SELECT FROM windlass.slots s
               WHERE s.state = 'WAITING' AND s.provider = g.provider AND s.priority = g.priority AND s.key > ''
           ) AS has_keys
    FROM (SELECT DISTINCT provider, priority FROM joined WHERE is_free) AS g
), put AS (
    INSERT INTO windlass.slots
        (job_id, no, provider, places, key, most, takes, state, fence, behind, priority, turn, cost, caller, recipe, jobs,
         since)
    SELECT w.job_id, w.no, w.provider, w.places, w.key, w.most, w.takes, w.state, (w.state = 'HELD')::int,
           CASE WHEN w.state = 'WAITING' AND w.key <> '' THEN 'key' END, w.priority,
           CASE WHEN w.key <> '' THEN -1
                WHEN NOT w.is_free THEN 0
                WHEN l.has_keys THEN greatest(l.first, l.last) - 1 + row_number() OVER (
                    PARTITION BY w.provider, w.priority, w.is_free ORDER BY w.job_id, w.no)
                ELSE l.first END,
           coalesce(w.cost, (SELECT p.estimate FROM windlass.providers p WHERE p.name = w.provider)),
           w.caller, w.recipe, w.jobs, windlass.clock()
    FROM joined w LEFT JOIN line l ON l.provider = w.provider AND l.priority = w.priority
    ON CONFLICT (job_id, no) DO UPDATE
    SET state = excluded.state,
        behind = excluded.behind,
        key = excluded.key,
        most = excluded.most,
        priority = excluded.priority,
        turn = excluded.turn,
        cost = excluded.cost,
        since = CASE WHEN slots.state = excluded.state THEN slots.since ELSE excluded.since END
    RETURNING job_id, no, fence, provider, places, key, most, takes, cost, caller, recipe, jobs, state
), change AS (
    INSERT INTO windlass.slot_changes (kind, name) SELECT * FROM unnest($10::text[], $11::text[])
)
SELECT job_id, no, fence, provider, places, key, most, takes, cost, caller, recipe, jobs FROM put WHERE state = 'HELD'

-- fragment: slot_of_steps
-- The rows of these steps, each found by its primary key.
WHERE ctid = ANY (ARRAY(
    SELECT s.ctid FROM unnest($1::uuid[], $2::int[]) AS d (job_id, no)
    CROSS JOIN LATERAL (
        SELECT s.ctid FROM windlass.slots s WHERE s.job_id = d.job_id AND s.no = d.no LIMIT 1
    ) AS s
))

-- name: slot_move
-- Moves existing rows to state $3: HELD with the next fence, or IDLE. The amounts stay, because a step must give back
-- exactly what it took.
UPDATE windlass.slots
SET state = $3, behind = NULL, fence = fence + ($3 = 'HELD')::int, since = windlass.clock()
-- include: slot_of_steps

-- name: slot_held
-- Returns which of these holdings are still held. The fence excludes an earlier holding of the same step.
SELECT d.job_id, d.no, d.fence
FROM unnest($1::uuid[], $2::int[], $3::bigint[]) AS d (job_id, no, fence)
CROSS JOIN LATERAL (
    SELECT FROM windlass.slots s
    WHERE s.job_id = d.job_id AND s.no = d.no AND s.fence = d.fence AND s.state || '' = 'HELD' LIMIT 1
) AS s

-- name: slot_sweep
DELETE FROM windlass.slots WHERE job_id = ANY($1::uuid[])

-- name: slot_change
INSERT INTO windlass.slot_changes (kind, name) SELECT * FROM unnest($1::text[], $2::text[])

-- name: grant_lock
-- Admits one granter at a time over all processes. No other lock uses this number.
SELECT pg_try_advisory_xact_lock(6015004)

-- name: grant_wait
SELECT pg_advisory_xact_lock(6015004)

-- name: grant_todo
-- Whether a resource of the kinds $1 has changed, and the providers whose lines the granter must check.
SELECT EXISTS (SELECT FROM windlass.slot_changes WHERE kind = ANY($1::text[])) AS has_changes,
       ARRAY(
           SELECT c.name FROM (SELECT name FROM windlass.slot_changes WHERE kind = 'provider' LIMIT 1000) AS c
           UNION
           SELECT name FROM windlass.providers WHERE grant_at <= windlass.clock()
           ORDER BY 1
       ) AS providers

-- name: grant_take_changes
-- Later statements of the transaction see every write that precedes these changes.
DELETE FROM windlass.slot_changes WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM windlass.slot_changes WHERE kind = ANY($2::text[]) LIMIT $1
))
RETURNING kind, name

-- name: grant_take_line
DELETE FROM windlass.slot_changes WHERE kind = 'provider' AND name = $1

-- name: grant_front
-- Moves the first steps of each key in $1 to the front of their providers' lines, at most $2 per key and provider. The
-- rest of the key's capacity must suffice for all of them. Higher priority goes first, then age. No step overtakes the
-- first step that does not fit: the steps behind it stay, and if it takes more than one, this holds at other providers
-- too. The moved steps get the turns after the steps of the same key at the front; without any, they start with the
-- first turn in line. Locked rows are skipped: the transaction that changes them reports the change.
WITH first AS MATERIALIZED (
    SELECT k.key, p.*, p.most - h.held AS room
    FROM unnest($1::text[]) AS k (key)
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(s.takes), 0) AS held FROM windlass.slots s
        WHERE s.state = 'HELD' AND s.key = k.key AND s.key <> ''
    ) AS h
    CROSS JOIN LATERAL (
        -- The first step of the key at each provider where any step waits; that provider need not be declared.
        WITH RECURSIVE firsts (provider, most, takes, priority, job_id, no) AS (
            (
                SELECT s.provider, s.most, s.takes, s.priority, s.job_id, s.no FROM windlass.slots s
                WHERE s.state = 'WAITING' AND s.key <> '' AND coalesce(s.behind, 'key') = 'key' AND s.key = k.key
                ORDER BY s.provider, s.priority DESC, s.job_id, s.no LIMIT 1
            )
            UNION ALL
            SELECT n.* FROM firsts f
            CROSS JOIN LATERAL (
                SELECT s.provider, s.most, s.takes, s.priority, s.job_id, s.no FROM windlass.slots s
                WHERE s.state = 'WAITING' AND s.key <> '' AND coalesce(s.behind, 'key') = 'key' AND s.key = k.key
                  AND s.provider > f.provider
                ORDER BY s.provider, s.priority DESC, s.job_id, s.no LIMIT 1
            ) AS n
        )
        SELECT * FROM firsts
    ) AS p
), line AS MATERIALIZED (
    SELECT f.key, f.provider, f.room,
           first_value(f.takes > 1 AND f.takes > f.room) OVER (
               PARTITION BY f.key ORDER BY f.priority DESC, f.job_id, f.no) AS is_kept
    FROM first f
), seen AS MATERIALIZED (
    SELECT n.job_id, n.no FROM line l
    CROSS JOIN LATERAL (
        SELECT w.job_id, w.no, w.behind,
               sum(w.takes) OVER (ORDER BY w.priority DESC, w.job_id, w.no ROWS UNBOUNDED PRECEDING) AS takes
        FROM (
            -- Each step takes at least one.
            SELECT s.job_id, s.no, s.behind, s.takes, s.priority FROM windlass.slots s
            WHERE s.state = 'WAITING' AND s.key <> '' AND coalesce(s.behind, 'key') = 'key'
              AND s.key = l.key AND s.provider = l.provider
            ORDER BY s.priority DESC, s.job_id, s.no LIMIT greatest(0, least(l.room, $2::bigint))
        ) AS w
    ) AS n
    WHERE n.behind = 'key' AND n.takes <= l.room AND NOT l.is_kept
), got AS MATERIALIZED (
    SELECT s.* FROM seen
    CROSS JOIN LATERAL (
        SELECT s.* FROM windlass.slots s
        WHERE s.job_id = seen.job_id AND s.no = seen.no AND s.state || '' = 'WAITING' AND s.behind = 'key'
        LIMIT 1 FOR UPDATE SKIP LOCKED
    ) AS s
), head AS MATERIALIZED (
    -- Once per line: the index still contains rows that left the line, until it is vacuumed.
    SELECT g.provider, g.priority, coalesce((
               SELECT s.turn FROM windlass.slots s
               WHERE s.state = 'WAITING' AND s.behind IS NULL AND s.provider = g.provider AND s.priority = g.priority
               ORDER BY s.turn LIMIT 1
           ), 0) AS turn
    FROM (SELECT DISTINCT provider, priority FROM got) AS g
), tail AS MATERIALIZED (
    SELECT g.provider, g.priority, g.key, (
               SELECT max(s.turn) + 1 FROM windlass.slots s
               WHERE s.state = 'WAITING' AND s.provider = g.provider AND s.priority = g.priority AND s.key = g.key
           ) AS turn
    FROM (SELECT DISTINCT provider, priority, key FROM got) AS g
), moved AS (
    INSERT INTO windlass.slots
        (job_id, no, provider, key, most, state, priority, cost, caller, recipe, jobs, since, turn)
    SELECT g.job_id, g.no, g.provider, g.key, g.most, g.state, g.priority, g.cost, g.caller, g.recipe, g.jobs, g.since,
           greatest(h.turn, t.turn)
               + row_number() OVER (PARTITION BY g.provider, g.priority, g.key ORDER BY g.job_id, g.no) - 1
    FROM got g
    JOIN head h ON h.provider = g.provider AND h.priority = g.priority
    JOIN tail t ON t.provider = g.provider AND t.priority = g.priority AND t.key = g.key
    -- Every row exists, so this only updates.
    ON CONFLICT (job_id, no) DO UPDATE SET behind = NULL, turn = excluded.turn
    RETURNING provider
)
INSERT INTO windlass.slot_changes (kind, name) SELECT DISTINCT 'provider', provider FROM moved

-- name: grant_short
-- The steps that wait for money of this budget, in order.
SELECT s.job_id, s.no, s.fence, s.provider, s.places, s.key, s.most, s.takes, s.cost, s.caller, s.recipe, s.jobs
FROM windlass.slots s
WHERE s.state = 'WAITING' AND s.behind <> 'key' AND s.behind = $1
ORDER BY s.priority DESC, s.job_id, s.no LIMIT $2
FOR UPDATE SKIP LOCKED

-- name: grant_back
-- Puts steps back in line: behind their key, or with their earlier turn.
UPDATE windlass.slots
SET behind = CASE WHEN key <> '' THEN 'key' END, turn = CASE WHEN key <> '' THEN -1 ELSE turn END
-- include: slot_of_steps

-- name: grant_behind
-- The jobs or these rows are locked, so no other transaction writes them.
UPDATE windlass.slots SET behind = $3, turn = CASE WHEN key <> '' THEN -1 ELSE turn END
WHERE ctid = ANY (ARRAY(
    SELECT s.ctid FROM unnest($1::uuid[], $2::int[]) AS d (job_id, no)
    CROSS JOIN LATERAL (
        SELECT s.ctid FROM windlass.slots s
        WHERE s.job_id = d.job_id AND s.no = d.no AND s.state || '' = 'WAITING' LIMIT 1
    ) AS s
))

-- name: grant_line
SELECT s.job_id, s.no, s.fence, s.provider, s.places, s.key, s.most, s.takes, s.cost, s.caller, s.recipe, s.jobs,
       EXISTS (SELECT FROM windlass.budgets) AS is_charged
FROM windlass.slots s
WHERE s.state = 'WAITING' AND s.behind IS NULL AND s.provider = $1
ORDER BY s.priority DESC, s.turn, s.job_id, s.no LIMIT $2

-- name: grant_keys
-- For each key, the held amount and the lowest limit that a holder states.
SELECT k.key, h.held, h.most
FROM unnest($1::text[]) AS k (key)
CROSS JOIN LATERAL (
    SELECT coalesce(sum(s.takes), 0) AS held, min(s.most) AS most FROM windlass.slots s
    WHERE s.state = 'HELD' AND s.key = k.key AND s.key <> ''
) AS h

-- name: grant_jobs
-- Locks the jobs that no other transaction writes to.
SELECT id FROM windlass.jobs WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED

-- name: provider_make
INSERT INTO windlass.providers (name, updated_at) VALUES ($1, windlass.clock()) ON CONFLICT DO NOTHING

-- name: provider_gate
-- A step that needs more places than the provider has takes all of them.
SELECT p.concurrency, p.rate, p.free_at, p.paused_until, p.failures, p.opened_at, p.probes, windlass.clock() AS now,
       (SELECT coalesce(sum(least(s.places, p.concurrency)), 0) FROM windlass.slots s
        WHERE s.state = 'HELD' AND s.provider = $1) AS held
FROM windlass.providers p WHERE p.name = $1 FOR UPDATE

-- name: provider_lock
SELECT rate, free_at, paused_until, failures, opened_at, probes, windlass.clock() AS now
FROM windlass.providers WHERE name = $1 FOR UPDATE

-- name: provider_taken
UPDATE windlass.providers
SET free_at = $2, failures = $3, opened_at = $4, probes = $5, updated_at = windlass.clock()
WHERE name = $1

-- name: provider_pass
UPDATE windlass.providers
SET free_at = $2, failures = $3, opened_at = $4, probes = $5, grant_at = $6, updated_at = windlass.clock()
WHERE name = $1

-- name: provider_later
UPDATE windlass.providers SET grant_at = $2 WHERE name = $1 AND grant_at IS DISTINCT FROM $2

-- name: provider_sync
-- Writes only rows that differ. Only then must the granter check the line again.
WITH put AS (
    INSERT INTO windlass.providers AS p (name, concurrency, rate, estimate, updated_at)
    SELECT d.*, windlass.clock()
    FROM unnest($1::text[], $2::int[], $3::float8[], $4::numeric[]) AS d (name, concurrency, rate, estimate)
    ON CONFLICT (name) DO UPDATE
    SET concurrency = excluded.concurrency, rate = excluded.rate, estimate = excluded.estimate,
        updated_at = excluded.updated_at
    WHERE (p.concurrency, p.rate, p.estimate) IS DISTINCT FROM (excluded.concurrency, excluded.rate, excluded.estimate)
    RETURNING name
), change AS (
    INSERT INTO windlass.slot_changes (kind, name) SELECT 'provider', name FROM put RETURNING name
)
SELECT true FROM change LIMIT 1

-- name: provider_busy
UPDATE windlass.providers
SET paused_until = greatest(paused_until, windlass.clock() + make_interval(secs => $2)), updated_at = windlass.clock()
WHERE name = $1

-- name: provider_failed
UPDATE windlass.providers
SET failures = $2, opened_at = $3, probes = $4, error = $5, updated_at = windlass.clock()
WHERE name = $1

-- name: provider_answered
-- Writes nothing while the breaker is closed and has no failures.
WITH closed AS (
    UPDATE windlass.providers
    SET failures = 0, opened_at = NULL, probes = 0, updated_at = windlass.clock()
    WHERE name = $1 AND (failures > 0 OR opened_at IS NOT NULL)
    RETURNING name
), change AS (
    INSERT INTO windlass.slot_changes (kind, name) SELECT 'provider', name FROM closed RETURNING name
)
SELECT true FROM change LIMIT 1

-- name: provider_views
SELECT p.*, windlass.clock() AS now, (
           SELECT count(*) FROM (
               SELECT FROM windlass.slots s WHERE s.state = 'WAITING' AND s.provider = p.name LIMIT $2
           ) AS w
       ) AS waiting,
       (SELECT coalesce(sum(least(s.places, p.concurrency)), 0) FROM windlass.slots s
        WHERE s.state = 'HELD' AND s.provider = p.name) AS held
FROM windlass.providers p WHERE $1::text IS NULL OR p.name = $1 ORDER BY p.name

-- name: provider_holders
SELECT s.job_id, s.no, t.node, t.index, t.attempt, t.state, s.since, j.plan
FROM windlass.slots s
CROSS JOIN LATERAL (SELECT * FROM windlass.steps t WHERE t.job_id = s.job_id AND t.no = s.no LIMIT 1) AS t
CROSS JOIN LATERAL (SELECT j.plan FROM windlass.jobs j WHERE j.id = s.job_id LIMIT 1) AS j
WHERE s.state = 'HELD' AND s.provider = $1
ORDER BY s.since, s.job_id, s.no LIMIT $2

-- name: provider_first
SELECT s.job_id, s.no, t.node, t.index, t.attempt, t.state, s.since, s.places, j.plan
FROM (
    SELECT * FROM windlass.slots
    WHERE state = 'WAITING' AND behind IS NULL AND provider = $1
    ORDER BY priority DESC, turn, job_id, no LIMIT 1
) AS s
CROSS JOIN LATERAL (SELECT * FROM windlass.steps t WHERE t.job_id = s.job_id AND t.no = s.no LIMIT 1) AS t
CROSS JOIN LATERAL (SELECT j.plan FROM windlass.jobs j WHERE j.id = s.job_id LIMIT 1) AS j

-- name: why_slot
-- A waiting step with all possible reasons.
SELECT s.provider, s.places, s.key, s.most, s.takes, s.state, s.behind, s.priority, s.turn, s.cost, s.since, s.job_id, s.no,
       p.concurrency, p.rate, p.free_at, p.paused_until, p.failures, p.opened_at, p.probes, p.error,
       windlass.clock() AS now,
       (SELECT coalesce(sum(least(h.places, p.concurrency)), 0) FROM windlass.slots h
        WHERE h.state = 'HELD' AND h.provider = s.provider AND s.provider <> '') AS held
FROM windlass.slots s LEFT JOIN windlass.providers p ON p.name = s.provider
WHERE s.job_id = $1 AND s.no = $2

-- name: why_ahead
-- The number of steps at the front of a provider's line before this step, counted up to 1000.
SELECT count(*) FROM (
    SELECT FROM windlass.slots s
    WHERE s.state = 'WAITING' AND s.behind IS NULL AND s.provider = $1
      AND (s.priority > $2 OR (s.priority = $2 AND (s.turn, s.job_id, s.no) < ($3, $4, $5)))
    LIMIT 1000
) AS ahead

-- name: why_key_ahead
SELECT count(*) FROM (
    SELECT FROM windlass.slots s
    WHERE s.state = 'WAITING' AND s.key <> '' AND coalesce(s.behind, 'key') = 'key' AND s.key = $1 AND s.provider = $2
      AND (s.priority > $3 OR (s.priority = $3 AND (s.job_id, s.no) < ($4, $5)))
    LIMIT 1000
) AS ahead

-- name: why_key_holders
SELECT s.job_id, s.no, t.node, t.index, t.attempt, t.state, s.since, j.plan
FROM windlass.slots s
CROSS JOIN LATERAL (SELECT * FROM windlass.steps t WHERE t.job_id = s.job_id AND t.no = s.no LIMIT 1) AS t
CROSS JOIN LATERAL (SELECT j.plan FROM windlass.jobs j WHERE j.id = s.job_id LIMIT 1) AS j
WHERE s.state = 'HELD' AND s.key <> '' AND s.key = $1
ORDER BY s.since, s.job_id, s.no LIMIT $2

-- name: why_work
-- The last provider job of a step.
SELECT provider, external_id, state, status, polls, due_at, round
FROM windlass.provider_jobs WHERE job_id = $1 AND no = $2 ORDER BY round DESC LIMIT 1
