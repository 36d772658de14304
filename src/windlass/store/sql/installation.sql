-- The single row that describes this installation (engine/installation.py).

-- name: installation_get
SELECT is_served, epoch FROM windlass.installation

-- name: installation_is_secret
SELECT secret_check = ANY ($1::bytea[]) FROM windlass.installation

-- name: installation_lock
SELECT is_served, epoch, system_id, secret_check, timeline FROM windlass.installation FOR UPDATE

-- name: installation_put
UPDATE windlass.installation SET is_served = $1, epoch = $2, system_id = coalesce($3, system_id), secret_check = $4

-- name: installation_system
-- Identifies the cluster. Some hosted servers do not allow every role to read it.
SELECT system_identifier FROM pg_control_system()

-- name: installation_timeline
-- The timeline that the server writes: the first eight digits of its log file's name. Any role may read it. It is
-- correct from the moment of a promotion, unlike the timeline of the last checkpoint.
SELECT is_served, epoch, timeline, ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int AS now
FROM windlass.installation

-- name: installation_set_timeline
UPDATE windlass.installation SET timeline = $1, epoch = $2

-- name: installation_forget_timeline
-- After a restore the stored timeline belongs to another cluster.
UPDATE windlass.installation SET timeline = NULL

-- name: installation_begin
-- The auditor starts with the service; it records no earlier events.
INSERT INTO windlass.cursors (name, txid, job_id, seq)
VALUES ('auditor', pg_snapshot_xmin(pg_current_snapshot()), '00000000-0000-0000-0000-000000000000', 0)
ON CONFLICT DO NOTHING

-- name: installation_untold
-- After a restore, gives the events that the auditor has not yet read the id of this transaction.
UPDATE windlass.events e SET txid = pg_current_xact_id()
FROM windlass.cursors c
WHERE c.name = 'auditor' AND (e.txid, e.job_id, e.seq) > (c.txid, c.job_id, c.seq)
  AND e.txid IS NOT NULL AND e.correlation_id IS NOT NULL AND (e.no IS NULL OR e.type = 'step.progress')

-- name: installation_forget
-- Clears transaction ids that this cluster has not reached yet: they would sort in the wrong order.
UPDATE windlass.events e SET txid = NULL
WHERE e.txid > pg_current_xact_id()
  AND e.txid IS NOT NULL AND e.correlation_id IS NOT NULL AND (e.no IS NULL OR e.type = 'step.progress')

-- name: installation_cursors
-- Without a cursor the webhook scheduler checks all waiting webhooks.
DELETE FROM windlass.cursors

-- name: installation_resume
INSERT INTO windlass.cursors (name, txid, job_id, seq)
VALUES ('auditor', pg_current_xact_id(), '00000000-0000-0000-0000-000000000000', 0)

-- name: installation_judges
-- From the first policy on, releases that judge no jobs may not start: they would run what the policy denies.
UPDATE windlass.installation SET oldest_schema = $1, oldest_release = $2 WHERE oldest_schema < $1
