-- Requests per caller.

-- name: limit_take_all
-- What each caller asks for, in the order of the callers: whoever takes several rows takes them in the same order.
-- Arrays of arrays cannot be ragged, so each caller's costs come as the text of an array.
SELECT t.granted, t.taken, t.into_slice
FROM unnest($1::text[], $2::text[], $3::int[], $4::float8[]) WITH ORDINALITY AS a (caller, costs, most, slice_s, place)
CROSS JOIN LATERAL windlass.limit_take(a.caller, a.costs::int[], a.most, a.slice_s) AS t
ORDER BY a.place

-- name: limit_active
-- Callers with anything in their window.
SELECT count(DISTINCT caller) FROM windlass.limits
WHERE (slice + 61) * slice_s > extract(epoch FROM windlass.clock())::float8

-- name: limit_forget
-- Rows of callers who have not asked for longer than their window.
DELETE FROM windlass.limits WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM windlass.limits WHERE (slice + 61) * slice_s < extract(epoch FROM windlass.clock())::float8
    LIMIT $1 FOR UPDATE SKIP LOCKED
))
