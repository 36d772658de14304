-- Standing in line: the rows of those who do (store/slots.py), and who is next (engine/loops/granter.py).
--
-- The table is often empty, and a plan that was made then is kept. A row that is looked up by its key stands in a
-- subquery with a limit, which can only be done row by row: a join may be turned round, and read everybody who waits.

-- name: slot_lock
-- The rows as they are before they change, in the order in which everyone locks them.
SELECT s.*
FROM unnest($1::uuid[], $2::int[]) AS d (job_id, no)
CROSS JOIN LATERAL (
    SELECT s.job_id, s.no, s.state, s.provider, s.key, s.cost, s.caller, s.recipe, s.jobs FROM windlass.slots s
    WHERE s.job_id = d.job_id AND s.no = d.no LIMIT 1 FOR UPDATE
) AS s

-- name: slot_write
-- Rows are $1 to $7 (no state: gone; no key: as it was), what the granter is to look at $8 and $9.
-- One that has a key joins behind it, and has no turn yet (-1). One that has none takes its turn now: that of the first in line, so that the age
-- of the jobs decides; but where keys take turns, those without one are one more of them.
WITH want AS MATERIALIZED (
    SELECT d.job_id, d.no, d.state, d.provider, coalesce(d.key, s.key, '') AS key, d.most, d.cost
    FROM unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::int[], $7::numeric[])
        AS d (job_id, no, state, provider, key, most, cost)
    LEFT JOIN LATERAL (
        SELECT s.key FROM windlass.slots s WHERE s.job_id = d.job_id AND s.no = d.no LIMIT 1
    ) AS s ON true
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
    -- Once for each line: who went before is still in its index until that is vacuumed.
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
        (job_id, no, provider, key, most, state, behind, priority, turn, cost, caller, recipe, jobs, since)
    SELECT w.job_id, w.no, w.provider, w.key, w.most, w.state,
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
        turn = CASE WHEN excluded.state = 'WAITING' THEN excluded.turn ELSE slots.turn END,
        -- What is reserved must be what is given back.
        cost = CASE WHEN excluded.state = 'WAITING' THEN excluded.cost ELSE slots.cost END,
        since = CASE WHEN slots.state = excluded.state THEN slots.since ELSE excluded.since END
    RETURNING job_id, no, state, cost, caller, recipe, jobs
), change AS (
    INSERT INTO windlass.slot_changes (kind, name) SELECT * FROM unnest($8::text[], $9::text[])
)
SELECT job_id, no, cost, caller, recipe, jobs FROM put WHERE state = 'HELD' AND cost IS NOT NULL

-- name: slot_sweep
DELETE FROM windlass.slots WHERE job_id = ANY($1::uuid[])
RETURNING job_id, no, state, provider, key, cost, caller, recipe, jobs

-- name: slot_change
INSERT INTO windlass.slot_changes (kind, name) SELECT * FROM unnest($1::text[], $2::text[])

-- name: grant_lock
-- One granter at a time, whichever process it is in; the number is nobody else's.
SELECT pg_try_advisory_xact_lock(6015004)

-- name: grant_wait
SELECT pg_advisory_xact_lock(6015004)

-- name: grant_todo
-- Whether keys or budgets have changed, and which providers' lines are to be looked at.
SELECT EXISTS (SELECT FROM windlass.slot_changes WHERE kind = ANY('{caller,job,key,recipe}'::text[])) AS has_keys,
       ARRAY(
           SELECT c.name FROM (SELECT name FROM windlass.slot_changes WHERE kind = 'provider' LIMIT 1000) AS c
           UNION
           SELECT name FROM windlass.providers WHERE grant_at <= windlass.clock()
           ORDER BY 1
       ) AS providers

-- name: grant_take_changes
-- Whatever came before this statement is seen by those that follow it.
DELETE FROM windlass.slot_changes WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM windlass.slot_changes WHERE kind = ANY('{caller,job,key,recipe}'::text[]) LIMIT $1
))
RETURNING kind, name

-- name: grant_take_line
DELETE FROM windlass.slot_changes WHERE kind = 'provider' AND name = $1

-- name: grant_front
-- As many of each key in $1 come to the front of their providers' lines as the key has places left, at most $2: the
-- oldest of the highest priority. Their turns follow those of the same key that are there already; a key that has none
-- there begins with the first in line.
-- A row that is locked is being changed, and whoever changes it says so.
WITH line AS MATERIALIZED (
    SELECT k.key, p.provider, p.most - (
               SELECT count(*) FROM windlass.slots s WHERE s.state = 'HELD' AND s.key = k.key AND s.key <> ''
           ) AS room
    FROM unnest($1::text[]) AS k (key)
    CROSS JOIN LATERAL (
        -- The first of the key at each provider where any waits, which need not be one that was declared.
        WITH RECURSIVE firsts (provider, most) AS (
            (
                SELECT s.provider, s.most FROM windlass.slots s
                WHERE s.state = 'WAITING' AND s.key <> '' AND coalesce(s.behind, 'key') = 'key' AND s.key = k.key
                ORDER BY s.provider, s.priority DESC, s.job_id, s.no LIMIT 1
            )
            UNION ALL
            SELECT n.provider, n.most FROM firsts f
            CROSS JOIN LATERAL (
                SELECT s.provider, s.most FROM windlass.slots s
                WHERE s.state = 'WAITING' AND s.key <> '' AND coalesce(s.behind, 'key') = 'key' AND s.key = k.key
                  AND s.provider > f.provider
                ORDER BY s.provider, s.priority DESC, s.job_id, s.no LIMIT 1
            ) AS n
        )
        SELECT provider, most FROM firsts
    ) AS p
), seen AS MATERIALIZED (
    SELECT n.job_id, n.no FROM line l
    CROSS JOIN LATERAL (
        SELECT s.job_id, s.no, s.behind FROM windlass.slots s
        WHERE s.state = 'WAITING' AND s.key <> '' AND coalesce(s.behind, 'key') = 'key'
          AND s.key = l.key AND s.provider = l.provider
        ORDER BY s.priority DESC, s.job_id, s.no LIMIT greatest(0, least(l.room, $2::bigint))
    ) AS n
    WHERE n.behind = 'key'
), got AS MATERIALIZED (
    SELECT s.* FROM seen
    CROSS JOIN LATERAL (
        SELECT s.* FROM windlass.slots s
        WHERE s.job_id = seen.job_id AND s.no = seen.no AND s.state || '' = 'WAITING' AND s.behind = 'key'
        LIMIT 1 FOR UPDATE SKIP LOCKED
    ) AS s
), moved AS (
    INSERT INTO windlass.slots
        (job_id, no, provider, key, most, state, priority, cost, caller, recipe, jobs, since, turn)
    SELECT g.job_id, g.no, g.provider, g.key, g.most, g.state, g.priority, g.cost, g.caller, g.recipe, g.jobs, g.since,
           greatest(
               coalesce((
                   SELECT s.turn FROM windlass.slots s
                   WHERE s.state = 'WAITING' AND s.behind IS NULL AND s.provider = g.provider
                     AND s.priority = g.priority
                   ORDER BY s.turn LIMIT 1
               ), 0),
               (
                   SELECT max(s.turn) + 1 FROM windlass.slots s
                   WHERE s.state = 'WAITING' AND s.provider = g.provider AND s.priority = g.priority AND s.key = g.key
               )
           ) + row_number() OVER (PARTITION BY g.provider, g.priority, g.key ORDER BY g.job_id, g.no) - 1
    FROM got g
    -- They are all there.
    ON CONFLICT (job_id, no) DO UPDATE SET behind = NULL, turn = excluded.turn
    RETURNING provider
)
INSERT INTO windlass.slot_changes (kind, name) SELECT DISTINCT 'provider', provider FROM moved

-- name: grant_short
-- Those who wait for money of this budget, in order.
SELECT job_id, no, provider, key, cost FROM windlass.slots
WHERE state = 'WAITING' AND behind <> 'key' AND behind = $1
ORDER BY priority DESC, job_id, no LIMIT $2
FOR UPDATE SKIP LOCKED

-- name: grant_back
-- They stand in line again: behind their key, or with the turn that they had.
UPDATE windlass.slots
SET behind = CASE WHEN key <> '' THEN 'key' END, turn = CASE WHEN key <> '' THEN -1 ELSE turn END
WHERE ctid = ANY (ARRAY(
    SELECT s.ctid FROM unnest($1::uuid[], $2::int[]) AS d (job_id, no)
    CROSS JOIN LATERAL (
        SELECT s.ctid FROM windlass.slots s WHERE s.job_id = d.job_id AND s.no = d.no LIMIT 1
    ) AS s
))

-- name: grant_behind
-- Their jobs are locked, so nobody else writes them.
UPDATE windlass.slots SET behind = $3, turn = CASE WHEN key <> '' THEN -1 ELSE turn END
WHERE ctid = ANY (ARRAY(
    SELECT s.ctid FROM unnest($1::uuid[], $2::int[]) AS d (job_id, no)
    CROSS JOIN LATERAL (
        SELECT s.ctid FROM windlass.slots s
        WHERE s.job_id = d.job_id AND s.no = d.no AND s.state || '' = 'WAITING' LIMIT 1
    ) AS s
))

-- name: grant_line
SELECT job_id, no, key, most, cost, caller, recipe, jobs FROM windlass.slots
WHERE state = 'WAITING' AND behind IS NULL AND provider = $1
ORDER BY priority DESC, turn, job_id, no LIMIT $2

-- name: grant_keys
-- How many hold each of these keys, and the least that one of them says may hold it.
SELECT k.key, h.held, h.most
FROM unnest($1::text[]) AS k (key)
CROSS JOIN LATERAL (
    SELECT count(*) AS held, min(s.most) AS most FROM windlass.slots s
    WHERE s.state = 'HELD' AND s.key = k.key AND s.key <> ''
) AS h

-- name: grant_has_budgets
SELECT EXISTS (SELECT FROM windlass.budgets)

-- name: grant_jobs
-- Of these jobs, those that nobody is writing to.
SELECT id FROM windlass.jobs WHERE id = ANY($1::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED

-- name: provider_make
INSERT INTO windlass.providers (name, updated_at) VALUES ($1, windlass.clock()) ON CONFLICT DO NOTHING

-- name: provider_gate
SELECT concurrency, rate, free_at, paused_until, failures, opened_at, probes, windlass.clock() AS now,
       EXISTS (SELECT FROM windlass.budgets) AS has_budgets,
       (SELECT count(*) FROM windlass.slots s WHERE s.state = 'HELD' AND s.provider = $1) AS held
FROM windlass.providers WHERE name = $1 FOR UPDATE

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
-- Only what differs is written, and only then is the line looked at again.
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
-- Nothing is written while all is well.
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
       (SELECT count(*) FROM windlass.slots s WHERE s.state = 'HELD' AND s.provider = p.name) AS held
FROM windlass.providers p WHERE $1::text IS NULL OR p.name = $1 ORDER BY p.name

-- name: provider_holders
SELECT s.job_id, s.no, t.node, t.index, t.attempt, t.state, s.since, j.plan
FROM windlass.slots s
CROSS JOIN LATERAL (SELECT * FROM windlass.steps t WHERE t.job_id = s.job_id AND t.no = s.no LIMIT 1) AS t
CROSS JOIN LATERAL (SELECT j.plan FROM windlass.jobs j WHERE j.id = s.job_id LIMIT 1) AS j
WHERE s.state = 'HELD' AND s.provider = $1
ORDER BY s.since, s.job_id, s.no LIMIT $2

-- name: provider_first
SELECT s.job_id, s.no, t.node, t.index, t.attempt, t.state, s.since, j.plan
FROM (
    SELECT * FROM windlass.slots
    WHERE state = 'WAITING' AND behind IS NULL AND provider = $1
    ORDER BY priority DESC, turn, job_id, no LIMIT 1
) AS s
CROSS JOIN LATERAL (SELECT * FROM windlass.steps t WHERE t.job_id = s.job_id AND t.no = s.no LIMIT 1) AS t
CROSS JOIN LATERAL (SELECT j.plan FROM windlass.jobs j WHERE j.id = s.job_id LIMIT 1) AS j

-- name: why_slot
-- One who waits, with all that may be the reason.
SELECT s.provider, s.key, s.most, s.state, s.behind, s.priority, s.turn, s.cost, s.since, s.job_id, s.no,
       p.concurrency, p.rate, p.free_at, p.paused_until, p.failures, p.opened_at, p.probes, p.error,
       windlass.clock() AS now
FROM windlass.slots s LEFT JOIN windlass.providers p ON p.name = s.provider
WHERE s.job_id = $1 AND s.no = $2

-- name: why_ahead
-- How many at the front of a provider's line are before this one.
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
-- What a provider was last asked to do for a step.
SELECT provider, external_id, state, status, polls, due_at, round
FROM windlass.provider_jobs WHERE job_id = $1 AND no = $2 ORDER BY round DESC LIMIT 1
