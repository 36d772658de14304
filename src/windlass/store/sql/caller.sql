-- Callers: their type and tier, and the ids that stand for callers without an id from Membership.

-- name: caller_know
INSERT INTO windlass.callers AS c (caller, caller_type, tier, known_at) VALUES ($1, $2, $3, windlass.clock())
ON CONFLICT (caller) DO UPDATE SET caller_type = excluded.caller_type, tier = excluded.tier, known_at = excluded.known_at
WHERE (c.caller_type, c.tier) IS DISTINCT FROM (excluded.caller_type, excluded.tier)

-- name: caller_known
SELECT caller, caller_type, tier FROM windlass.callers WHERE caller = ANY ($1::text[])

-- name: caller_find
-- Searches under every accepted secret, newest first, so that a caller keeps its id when the secret changes.
SELECT coalesce(a.adopted_by, a.caller) FROM windlass.caller_aliases a WHERE a.digest = ANY ($1::bytea[])
ORDER BY array_position($1::bytea[], a.digest) LIMIT 1

-- name: caller_put
INSERT INTO windlass.caller_aliases (digest, caller, created_at) VALUES ($1, $2, windlass.clock())
ON CONFLICT (digest) DO NOTHING

-- name: caller_adopt
-- The holder of this key has a name now. The first name stands.
UPDATE windlass.caller_aliases SET adopted_by = $2
WHERE digest = ANY ($1::bytea[]) AND adopted_by IS NULL AND caller <> $2
RETURNING caller

-- name: caller_adopted
-- Ids of ours that have jobs, and the names that the jobs go to.
SELECT DISTINCT a.caller, a.adopted_by FROM windlass.caller_aliases a
WHERE a.adopted_by IS NOT NULL AND EXISTS (SELECT FROM windlass.jobs j WHERE j.caller = a.caller)
ORDER BY a.caller LIMIT $1

-- name: caller_take_over
-- A batch of one id's jobs, with their webhooks. A job that stands in a line or holds a place follows when it has none: what
-- it reserved of a budget was reserved in the name that its slot has. A key that the new name used already is dropped.
WITH found AS (
    SELECT j.id FROM windlass.jobs j
    WHERE j.caller = $1 AND NOT EXISTS (SELECT FROM windlass.slots s WHERE s.job_id = j.id)
    ORDER BY j.id LIMIT $3 FOR UPDATE SKIP LOCKED
), moved AS (
    UPDATE windlass.jobs j
    SET caller = $2,
        idempotency_key = CASE WHEN NOT EXISTS (
            SELECT FROM windlass.jobs o WHERE o.caller = $2 AND o.idempotency_key = j.idempotency_key
        ) THEN j.idempotency_key END
    FROM found WHERE j.id = found.id
    RETURNING j.id
), hook AS (
    UPDATE windlass.webhooks w SET caller = $2 FROM moved WHERE w.job_id = moved.id
)
SELECT count(*) FROM moved
