-- Indexed labels. An index is the whole declaration: its name carries the label's, and the catalogue says if it is valid.
--
-- A label has two indexes: `jobs_label_NAME` for the lists of one caller, `jobs_all_label_NAME` for lists of all. Both are
-- partial, so a job without the label has no entry in either. One is by text and the other by JSON: so the planner cannot
-- take the wrong one, and walk through the jobs of all callers to find those of one.

-- name: label_indexed
-- Of the names in $1 those with a valid index; $2 is the index's prefix.
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
-- The statements that give a label ($1) its indexes, in order. An index that was left half made is dropped first. They are
-- text because no transaction, and so no function, can contain CONCURRENTLY; `format` quotes the name.
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
-- Statistics of an expression come about with its index, and are gathered by the next ANALYZE only.
ANALYZE windlass.jobs

-- name: label_lock
-- Not a lock that is waited for: a statement that waits holds a snapshot, and CONCURRENTLY waits for all snapshots.
SELECT pg_try_advisory_lock($1)

-- name: label_unlock
SELECT pg_advisory_unlock($1)
