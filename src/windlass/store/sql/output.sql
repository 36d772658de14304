-- The outputs of steps as JSON text, in pieces: a reader never has more of a large one in hand than it asks for.

-- name: output_sizes
-- The rows that hold the outputs of these steps, in order: a step's own, or those of a fan-out's children. The text comes
-- along only if it is short; a reference to an artifact always is.
SELECT s.no AS step, s.fan IS NOT NULL AS is_fan, held.no, octet_length(held.body) AS size,
       CASE WHEN octet_length(held.body) <= $3 THEN held.body END AS short,
       coalesce(held.state, s.state) AS state, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps s
LEFT JOIN LATERAL (
    SELECT r.no, r.index, r.state, convert_to(r.output::text, 'UTF8') AS body
    FROM windlass.steps r
    WHERE r.job_id = s.job_id
      AND CASE WHEN s.fan IS NULL THEN r.no = s.no ELSE r.node = s.no AND r.index IS NOT NULL END
) AS held ON true
WHERE s.job_id = $1 AND s.no = ANY ($2) AND s.state = 'COMPLETED'
ORDER BY s.no, held.index

-- name: output_slices
-- Some bytes of the outputs of some rows, in the order in which they are asked for.
SELECT substring(convert_to(s.output::text, 'UTF8') FROM t.start + 1 FOR t.length) AS body, s.state,
       (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM unnest($2::int[], $3::int[], $4::int[]) WITH ORDINALITY AS t (no, start, length, place)
JOIN windlass.steps s ON s.job_id = $1 AND s.no = t.no
ORDER BY t.place
