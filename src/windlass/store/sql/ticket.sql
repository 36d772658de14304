-- One-use rights to open a stream. Only digests are kept.

-- name: ticket_put
INSERT INTO windlass.tickets (digest, context, job_id, expires_at)
VALUES ($1, $2, $3, windlass.clock() + $4::float8 * interval '1 s')
RETURNING expires_at

-- name: ticket_spend
-- Whoever deletes the row has spent it: of any number who try at once, one. A key that was revoked or ran out since the
-- ticket was made ends it as well.
DELETE FROM windlass.tickets t
WHERE t.digest = ANY ($1::bytea[]) AND t.expires_at > windlass.clock() AND (t.job_id IS NULL OR t.job_id = $2)
  AND NOT EXISTS (
      SELECT FROM windlass.keys k
      WHERE k.id = t.context ->> 'key_id' AND (k.revoked_at IS NOT NULL OR k.expires_at <= windlass.clock()))
RETURNING t.context
