-- What a test's harness asks, and nobody else.

-- name: harness_wakes
-- When the next step wakes up, but for those that wait for a word which only the test can give.
SELECT min(wake_at) FROM windlass.steps WHERE state = 'PARKED' AND NOT coalesce(waiting_for = ANY($1::text[]), false)
