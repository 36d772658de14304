-- Kernels outside of the processes: the pace of the questions, and the breaker (engine/kernels.py).

-- name: kernel_lock
SELECT free_at, failures, opened_at, probes, successes, round, windlass.clock() AS now
FROM windlass.kernels WHERE name = $1 AND direction = $2 FOR UPDATE

-- name: kernel_make
INSERT INTO windlass.kernels (name, direction, updated_at) VALUES ($1, $2, windlass.clock()) ON CONFLICT DO NOTHING

-- name: kernel_taken
-- Counts questions in the transaction that locked the row, so all processes together send no more probes than the law
-- admits (core/breaker.py). The column's check would refuse a fourth.
UPDATE windlass.kernels
SET free_at = :free_at, opened_at = :opened_at, probes = :probes, successes = :successes, round = :round,
    updated_at = windlass.clock()
WHERE name = :name AND direction = :direction

-- name: kernel_reported
-- An error stays for people to read until the kernel answers again.
UPDATE windlass.kernels
SET failures = :failures, opened_at = :opened_at, probes = :probes, successes = :successes, round = :round,
    error = CASE WHEN :failures::int = 0 THEN NULL ELSE coalesce(:error::text, error) END,
    updated_at = windlass.clock()
WHERE name = :name AND direction = :direction

-- name: kernel_answered
-- Every question of a closed breaker was answered. Nearly always there is nothing to write.
UPDATE windlass.kernels SET failures = 0, error = NULL, updated_at = windlass.clock()
WHERE name = $1 AND direction = $2 AND failures > 0 AND opened_at IS NULL

-- name: kernel_list
SELECT name, direction, failures, opened_at, probes, successes, error, updated_at, windlass.clock() AS now
FROM windlass.kernels ORDER BY name, direction
