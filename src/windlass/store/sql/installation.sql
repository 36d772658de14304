-- The one row that says what this installation is (engine/installation.py).

-- name: installation_get
SELECT is_served, epoch FROM windlass.installation

-- name: installation_is_secret
SELECT secret_check = ANY ($1::bytea[]) FROM windlass.installation

-- name: installation_lock
SELECT is_served, epoch, system_id, secret_check, timeline FROM windlass.installation FOR UPDATE

-- name: installation_put
UPDATE windlass.installation SET is_served = $1, epoch = $2, system_id = coalesce($3, system_id), secret_check = $4

-- name: installation_system
-- Which cluster this is. Not everybody may ask, on some hosted servers.
SELECT system_identifier FROM pg_control_system()

-- name: installation_timeline
-- The timeline that the server writes on: the first eight digits of its log file's name. Any role may ask that, and it is
-- right from the moment of a promotion, unlike what the last checkpoint says.
SELECT is_served, epoch, timeline, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int AS now
FROM windlass.installation

-- name: installation_set_timeline
UPDATE windlass.installation SET timeline = $1, epoch = $2

-- name: installation_forget_timeline
-- After a restore: the timeline was that of another cluster.
UPDATE windlass.installation SET timeline = NULL

-- name: installation_begin
-- The auditor begins where the service does: what happened before is not made up.
INSERT INTO windlass.cursors (name, txid, job_id, seq)
VALUES ('auditor', pg_snapshot_xmin(pg_current_snapshot()), '00000000-0000-0000-0000-000000000000', 0)
ON CONFLICT DO NOTHING

-- name: installation_untold
-- After a restore: what the auditor had not come to yet counts as written now, by this transaction.
UPDATE windlass.events e SET txid = pg_current_xact_id()
FROM windlass.cursors c
WHERE c.name = 'auditor' AND (e.txid, e.job_id, e.seq) > (c.txid, c.job_id, c.seq)
  AND e.txid IS NOT NULL AND e.correlation_id IS NOT NULL AND (e.no IS NULL OR e.type = 'step.progress')

-- name: installation_forget
-- Numbers that this cluster has yet to give would come out of order.
UPDATE windlass.events e SET txid = NULL
WHERE e.txid > pg_current_xact_id()
  AND e.txid IS NOT NULL AND e.correlation_id IS NOT NULL AND (e.no IS NULL OR e.type = 'step.progress')

-- name: installation_cursors
-- The herald looks at all that waits when it finds no cursor.
DELETE FROM windlass.cursors

-- name: installation_resume
INSERT INTO windlass.cursors (name, txid, job_id, seq)
VALUES ('auditor', pg_current_xact_id(), '00000000-0000-0000-0000-000000000000', 0)

-- name: engine_seen
INSERT INTO windlass.engines (id, host, pid, started_at, seen_at) VALUES ($1, $2, $3, windlass.clock(), windlass.clock())
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at

-- name: engine_gone
DELETE FROM windlass.engines WHERE id = $1

-- name: engine_forget
DELETE FROM windlass.engines WHERE seen_at < windlass.clock() - interval '1 day'
