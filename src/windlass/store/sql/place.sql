-- The places of jobs under a limit of concurrent jobs (engine/places.py).

-- name: place_lock
-- Locks these places, and returns the open jobs that hold them. The caller gives the keys in order.
WITH found AS (
    INSERT INTO windlass.places AS p (key, jobs) SELECT key, '{}' FROM unnest($1::text[]) AS d (key)
    ON CONFLICT (key) DO UPDATE SET key = excluded.key
    RETURNING p.key, p.jobs
)
SELECT f.key, ARRAY(
    SELECT j.id FROM unnest(f.jobs) AS d (id) JOIN windlass.jobs j ON j.id = d.id AND j.finished_at IS NULL
) AS jobs
FROM found f

-- name: place_write
UPDATE windlass.places SET jobs = $2 WHERE key = $1
