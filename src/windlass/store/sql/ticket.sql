-- Tickets: one-use rights to open a stream. Only digests are stored.

-- name: ticket_put
INSERT INTO windlass.tickets (digest, context, job_id, expires_at)
VALUES ($1, $2, $3, windlass.clock() + $4::float8 * interval '1 s')
RETURNING expires_at

-- name: ticket_spend
-- The transaction that deletes the row has used the ticket, so only one of several concurrent requests succeeds. A key
-- that was revoked or has expired since also invalidates the ticket.
DELETE FROM windlass.tickets t
WHERE t.digest = ANY ($1::bytea[]) AND t.expires_at > windlass.clock() AND (t.job_id IS NULL OR t.job_id = $2)
  AND NOT EXISTS (
      SELECT FROM windlass.keys k
      WHERE k.id = t.context ->> 'key_id' AND (k.revoked_at IS NOT NULL OR k.expires_at <= windlass.clock()))
RETURNING t.context

-- name: ticket_forget
-- Deletes expired tickets. There are never many.
DELETE FROM windlass.tickets WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM windlass.tickets WHERE expires_at < windlass.clock() LIMIT $1 FOR UPDATE SKIP LOCKED
))
