-- Sessions of the console and the links that begin them (access/sessions.py).

-- name: console_token_put
INSERT INTO windlass.console_tokens (digest, key_id, expires_at)
VALUES ($1, $2, windlass.clock() + $3::float8 * interval '1 s')
ON CONFLICT (digest) DO UPDATE SET expires_at = excluded.expires_at
RETURNING expires_at

-- name: console_session_by_token
-- The transaction that deletes the token has used it, so only one of several concurrent requests succeeds. A revoked or
-- expired key also invalidates the token.
WITH spent AS (
    DELETE FROM windlass.console_tokens t
    WHERE t.digest = ANY ($1::bytea[]) AND t.expires_at > windlass.clock()
    RETURNING t.key_id
)
INSERT INTO windlass.console_sessions (digest, caller, key_id, created_at, expires_at)
SELECT $2, k.caller, k.id, windlass.clock(), windlass.clock() + $3::float8 * interval '1 s'
FROM spent JOIN windlass.keys k ON k.id = spent.key_id
WHERE k.revoked_at IS NULL AND coalesce(k.expires_at > windlass.clock(), true)
RETURNING caller, key_id

-- name: console_session_put
-- Returns nothing if the session exists: an earlier commit, whose answer was lost, created it.
INSERT INTO windlass.console_sessions (digest, caller, key_id, sealed, created_at, expires_at)
VALUES ($1, $2, $3, $4, windlass.clock(), windlass.clock() + $5::float8 * interval '1 s')
ON CONFLICT (digest) DO NOTHING
RETURNING caller, key_id

-- name: console_session_trim
-- A caller keeps the $2 sessions that expire last; the least recently used sessions are deleted.
DELETE FROM windlass.console_sessions WHERE digest IN (
    SELECT digest FROM windlass.console_sessions WHERE caller = $1 ORDER BY expires_at DESC, digest OFFSET $2
)

-- name: console_session_look
SELECT s.digest, s.caller, s.key_id, s.sealed, s.expires_at,
       s.expires_at < least(windlass.clock() + $2::float8 * interval '1 s', s.created_at + $3::float8 * interval '1 s')
                      - $4::float8 * interval '1 s' AS is_due,
       k.caller_type, k.tier, k.scopes, k.roles
FROM windlass.console_sessions s LEFT JOIN windlass.keys k ON k.id = s.key_id
WHERE s.digest = ANY ($1::bytea[]) AND s.expires_at > windlass.clock()
  AND (s.key_id IS NULL
       OR (k.id IS NOT NULL AND k.revoked_at IS NULL AND coalesce(k.expires_at > windlass.clock(), true)))
LIMIT 1

-- name: console_session_seen
-- Extends a session that is used, up to its maximum lifetime, and marks its key as used.
WITH seen AS (
    UPDATE windlass.console_sessions
    SET expires_at = least(windlass.clock() + $2::float8 * interval '1 s', created_at + $3::float8 * interval '1 s')
    WHERE digest = $1
    RETURNING key_id, expires_at
), used AS (
    UPDATE windlass.keys SET last_used_at = windlass.clock() WHERE id = (SELECT key_id FROM seen)
)
SELECT expires_at FROM seen

-- name: console_session_end
DELETE FROM windlass.console_sessions WHERE digest = ANY ($1::bytea[])
RETURNING caller, key_id

-- name: console_forget
-- Deletes expired sessions and links. There are never many.
WITH sessions AS (
    DELETE FROM windlass.console_sessions WHERE digest IN (
        SELECT digest FROM windlass.console_sessions WHERE expires_at < windlass.clock() LIMIT $1 FOR UPDATE SKIP LOCKED
    )
)
DELETE FROM windlass.console_tokens WHERE digest IN (
    SELECT digest FROM windlass.console_tokens WHERE expires_at < windlass.clock() LIMIT $1 FOR UPDATE SKIP LOCKED
)
