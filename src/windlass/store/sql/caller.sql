-- Callers whose Membership names no id: known by the digest of their key, called by an id of ours.

-- name: caller_find
-- Under every secret that is accepted, the newest first: a caller keeps its id when the secret changes.
SELECT a.caller FROM windlass.caller_aliases a WHERE a.digest = ANY ($1::bytea[])
ORDER BY array_position($1::bytea[], a.digest) LIMIT 1

-- name: caller_put
INSERT INTO windlass.caller_aliases (digest, caller, created_at) VALUES ($1, $2, windlass.clock())
ON CONFLICT (digest) DO NOTHING
