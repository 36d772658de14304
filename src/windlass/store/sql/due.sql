-- The next due time of each engine duty (engine/loops/duty.py). A duty names a table, or a statement in its own SQL
-- file that returns one time or nothing. A time that is not in the future means now.

-- name: due_times
-- One read for all duties: their statements replace the mark, in order. It also records, at most once a second, that an
-- engine checked the leases. It does not if the last check is too long ago ($1 parts of the shortest lease): the duty
-- that finds lost workers handles that gap.
WITH lease AS MATERIALIZED (
    SELECT min(coalesce(c.lease_s, 15))::float8 AS shortest_s
    -- include: worker_leased
), looked AS (
    UPDATE windlass.installation i SET looked_at = windlass.clock()
    FROM lease
    WHERE i.looked_at > windlass.clock()
       OR i.looked_at < windlass.clock() - make_interval(secs => least(1, lease.shortest_s / 6))
          AND (lease.shortest_s IS NULL
               OR i.looked_at >= windlass.clock() - make_interval(secs => $1::float8 * lease.shortest_s))
)
SELECT ARRAY[/* duties */]::timestamptz[] AS moments, (SELECT shortest_s FROM lease) AS shortest_s, windlass.clock() AS now

-- name: due_earliest
-- For a duty that names a table and a column. store/due.py substitutes `:"table"` and `:"column"`; in psql \set does.
SELECT min(:"column") FROM windlass.:"table" WHERE :"column" IS NOT NULL

-- name: due_earliest_in_state
-- The state is literal text, not a parameter: the planner uses a partial index only for a constant.
SELECT min(:"column") FROM windlass.:"table" WHERE state = :'state' AND :"column" IS NOT NULL

-- name: due_any
-- For a duty that is due while a table has rows.
SELECT windlass.clock() WHERE EXISTS (SELECT FROM windlass.:"table")

-- name: due_any_in_state
SELECT windlass.clock() WHERE EXISTS (SELECT FROM windlass.:"table" WHERE state = :'state')

-- name: due_granter
SELECT CASE WHEN EXISTS (SELECT FROM windlass.slot_changes) THEN windlass.clock()
            ELSE (SELECT min(grant_at) FROM windlass.providers) END
