-- Built-in API keys. Only their digests are stored.

-- name: key_create
-- Returns nothing if the key exists: an earlier commit, whose answer was lost, created it.
INSERT INTO windlass.keys (id, digest, caller, caller_type, tier, scopes, roles, name, created_at, created_by, expires_at)
VALUES (:id, :digest, :caller, :caller_type, :tier, :scopes, :roles::text[], :name, windlass.clock(), :created_by,
        windlass.clock() + make_interval(secs => :expires_in_s::float8))
ON CONFLICT (id) DO NOTHING
RETURNING *, true AS is_live

-- name: key_look
SELECT *, revoked_at IS NULL AND coalesce(expires_at > windlass.clock(), true) AS is_live,
       extract(epoch FROM expires_at - windlass.clock())::float8 AS left_s
FROM windlass.keys WHERE id = $1

-- name: key_list
SELECT *, revoked_at IS NULL AND coalesce(expires_at > windlass.clock(), true) AS is_live
FROM windlass.keys ORDER BY id

-- name: key_list_caller
SELECT *, revoked_at IS NULL AND coalesce(expires_at > windlass.clock(), true) AS is_live
FROM windlass.keys WHERE caller = $1 ORDER BY id

-- name: key_revoke
UPDATE windlass.keys SET revoked_at = windlass.clock() WHERE id = $1 AND revoked_at IS NULL
RETURNING *, false AS is_live

-- name: key_used
UPDATE windlass.keys SET last_used_at = windlass.clock() WHERE id = ANY ($1::text[])
