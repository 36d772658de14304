-- The processes that run engine loops.

-- name: engine_seen
INSERT INTO windlass.engines (id, host, pid, started_at, seen_at) VALUES ($1, $2, $3, windlass.clock(), windlass.clock())
ON CONFLICT (id) DO UPDATE SET seen_at = excluded.seen_at

-- name: engine_gone
DELETE FROM windlass.engines WHERE id = $1

-- name: engine_forget
DELETE FROM windlass.engines WHERE seen_at < windlass.clock() - interval '1 day'
