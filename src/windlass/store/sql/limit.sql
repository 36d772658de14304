-- Rate limits: the requests of each caller.

-- name: limit_take_all
-- Takes the requests of several callers in the order of the callers, so that all transactions lock rows in the same
-- order. Nested arrays must have equal lengths, so the costs of each caller are the text of an array.
SELECT t.granted, t.taken, t.into_slice
FROM unnest($1::text[], $2::text[], $3::int[], $4::float8[]) WITH ORDINALITY AS a (caller, costs, most, slice_s, place)
CROSS JOIN LATERAL windlass.limit_take(a.caller, a.costs::int[], a.most, a.slice_s) AS t
ORDER BY a.place

-- name: limit_active
-- The number of callers with requests in their window.
SELECT count(DISTINCT caller) FROM windlass.limits
WHERE (slice + 61) * slice_s > extract(epoch FROM windlass.clock())::float8

-- name: limit_forget
-- Deletes the rows of callers without requests in their window.
DELETE FROM windlass.limits WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM windlass.limits WHERE (slice + 61) * slice_s < extract(epoch FROM windlass.clock())::float8
    LIMIT $1 FOR UPDATE SKIP LOCKED
))
