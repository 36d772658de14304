-- The counters of velocity limits (engine/velocity.py).

-- name: velocity_lock
-- Locks these counters, and makes missing ones. The caller gives them in order.
INSERT INTO windlass.velocity AS v (counter, window_s, counts, until)
SELECT d.counter, d.window_s, '{}', windlass.clock() + make_interval(secs => d.window_s)
FROM unnest($1::text[], $2::int[]) AS d (counter, window_s)
ON CONFLICT (counter, window_s) DO UPDATE SET until = excluded.until
RETURNING v.counter, v.window_s, v.counts, extract(epoch FROM windlass.clock())::float8 AS now_s

-- name: velocity_read
-- A counter as a simulation sees it: without a lock.
SELECT counts, extract(epoch FROM windlass.clock())::float8 AS now_s
FROM windlass.velocity WHERE counter = $1 AND window_s = $2

-- name: velocity_write
UPDATE windlass.velocity v SET counts = d.counts, until = windlass.clock() + make_interval(secs => d.window_s * 1.1)
FROM unnest($1::text[], $2::int[], $3::json[]) AS d (counter, window_s, counts)
WHERE v.counter = d.counter AND v.window_s = d.window_s

-- name: velocity_forget
-- Deletes counters without requests in their window.
DELETE FROM windlass.velocity WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM windlass.velocity WHERE until < windlass.clock() LIMIT $1 FOR UPDATE SKIP LOCKED
))
