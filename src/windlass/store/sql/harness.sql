-- Statements for test harnesses only.

-- name: harness_wakes
-- The time at which the next step wakes without the test. A step that waits for an event, for people, or for an answer of anything
-- but the providers in $1, waits for the test.
SELECT min(wake_at) FROM windlass.steps
WHERE state = 'PARKED'
  AND (waiting_for = ANY($1::text[]) OR NOT coalesce(waiting_for LIKE ANY('{event:%,approval:%,external:%}'), false))
