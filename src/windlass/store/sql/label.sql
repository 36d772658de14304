-- Indexed labels. The index is the declaration: its name contains the label's name, and the catalogue says whether it
-- is valid.
--
-- A label has two indexes: `jobs_label_NAME` for lists of one caller, `jobs_all_label_NAME` for lists of all callers.
-- Both are partial, so a job without the label has no entry in either. One index is on text and the other on JSON. So
-- the planner cannot choose the wrong index, and scan the jobs of all callers to find the jobs of one.

-- name: label_indexed
-- The names in $1 that have a valid index; $2 is the index's prefix.
SELECT n.name FROM unnest($1::text[]) AS n (name)
JOIN pg_catalog.pg_class c ON c.relname = $2 || n.name AND c.relnamespace = 'windlass'::regnamespace
JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid AND i.indrelid = 'windlass.jobs'::regclass AND i.indisvalid
ORDER BY n.name

-- name: label_all
-- Every label with an index, and whether all of its indexes are valid.
SELECT l.name, count(*) = 2 AND bool_and(i.indisvalid) AS is_ready
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid,
LATERAL (SELECT substring(c.relname FROM '^jobs_(?:all_)?label_(.*)$') AS name) l
WHERE i.indrelid = 'windlass.jobs'::regclass AND l.name IS NOT NULL
GROUP BY l.name ORDER BY l.name

-- name: label_work
-- The statements that create the indexes of a label ($1), in order. An incomplete index is dropped first. They are text
-- because no transaction, and so no function, can contain CONCURRENTLY; `format` quotes the name.
SELECT statement FROM (
    VALUES (1, 'jobs_label_' || $1::text,
            format('CREATE INDEX CONCURRENTLY %I ON windlass.jobs (caller, (labels ->> %L), id) WHERE labels ? %L',
                   'jobs_label_' || $1, $1, $1)),
           (2, 'jobs_all_label_' || $1,
            format('CREATE INDEX CONCURRENTLY %I ON windlass.jobs ((labels -> %L), id) WHERE labels ? %L',
                   'jobs_all_label_' || $1, $1, $1))
) AS w (place, index, create_text)
LEFT JOIN pg_catalog.pg_class c ON c.relname = w.index AND c.relnamespace = 'windlass'::regnamespace
LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid,
LATERAL (VALUES (1, CASE WHEN i.indisvalid = false
                         THEN format('DROP INDEX CONCURRENTLY IF EXISTS windlass.%I', w.index) END),
                (2, CASE WHEN i.indisvalid IS NOT TRUE THEN w.create_text END)) AS s (turn, statement)
WHERE s.statement IS NOT NULL
ORDER BY w.place, s.turn

-- name: label_drop
SELECT format('DROP INDEX CONCURRENTLY IF EXISTS windlass.%I', prefix || $1::text)
FROM unnest(ARRAY['jobs_label_', 'jobs_all_label_']) AS p (prefix)

-- name: label_analyze
-- An index on an expression enables statistics of the expression, which only the next ANALYZE gathers.
ANALYZE windlass.jobs

-- name: label_lock
-- Tries the lock without waiting: a waiting statement holds a snapshot, and CONCURRENTLY waits for all snapshots.
SELECT pg_try_advisory_lock($1)

-- name: label_unlock
SELECT pg_advisory_unlock($1)
