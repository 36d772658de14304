-- The outputs of steps as JSON text, in slices: a reader never holds more of a large output than it asked for.

-- name: output_sizes
-- The rows with the outputs of these steps, in order: the step's own row, or the rows of a fan-out's children. Only
-- short texts are included; a reference to an artifact is always short.
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
-- Byte ranges of the outputs of some rows, in the requested order.
SELECT substring(convert_to(s.output::text, 'UTF8') FROM t.start + 1 FOR t.length) AS body, s.state,
       (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM unnest($2::int[], $3::int[], $4::int[]) WITH ORDINALITY AS t (no, start, length, place)
JOIN windlass.steps s ON s.job_id = $1 AND s.no = t.no
ORDER BY t.place
