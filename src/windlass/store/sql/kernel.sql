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

-- name: kernel_announce
-- The kernel that is asked about every new job; NULL: none. Nothing is written if it is the same.
WITH changed AS (
    UPDATE windlass.policy_now SET kernel = $1 WHERE kernel IS DISTINCT FROM $1 RETURNING kernel
), note AS (
    INSERT INTO windlass.audit_notes (at, event, caller, payload)
    SELECT windlass.clock(), 'kernel_set', NULL, json_build_object('kernel', kernel) FROM changed
)
SELECT true FROM changed

-- name: kernel_take
-- Takes jobs whose kernel is to be asked now. Other processes leave them alone for $2 seconds, in which this process
-- asks and commits; if it dies, they are asked about again then.
UPDATE windlass.jobs SET gate_at = windlass.clock() + make_interval(secs => $2::float8)
WHERE id = ANY (ARRAY(
    SELECT id FROM windlass.jobs
    WHERE gate_at <= windlass.clock() AND (policy IS NULL OR bypassed_at IS NOT NULL)
    ORDER BY gate_at LIMIT $1 FOR UPDATE SKIP LOCKED
))
RETURNING id

-- name: kernel_due
-- The next question to the kernel; never without a kernel.
SELECT min(gate_at) FROM windlass.jobs
WHERE gate_at IS NOT NULL AND (policy IS NULL OR bypassed_at IS NOT NULL)
  AND (SELECT kernel FROM windlass.policy_now) IS NOT NULL

-- name: kernel_postpone
-- Jobs whose kernel gave no verdict. No attempt is burnt: `gate_tries` counts questions, and has no end.
UPDATE windlass.jobs j
SET gate_at = windlass.clock() + make_interval(secs => d.wait_s),
    gate_tries = CASE WHEN j.gate_tries IS NULL THEN NULL ELSE least(j.gate_tries + d.tries, 1000) END
FROM unnest($1::uuid[], $2::float8[], $3::int[]) AS d (id, wait_s, tries)
WHERE j.id = d.id AND j.gate_at IS NOT NULL AND j.finished_at IS NULL

-- name: kernel_forget
-- Jobs that ended before their kernel answered.
UPDATE windlass.jobs SET gate_at = NULL WHERE id = ANY ($1::uuid[]) AND finished_at IS NOT NULL

-- name: kernel_bypassed
-- Jobs that run although their kernel is silent. The verdict about it is in the same commit.
WITH gone AS (
    UPDATE windlass.jobs
    SET bypassed_at = windlass.clock(), gate_at = windlass.clock() + interval '30 s'
    WHERE id = ANY ($1::uuid[]) AND finished_at IS NULL AND policy IS NOT NULL AND bypassed_at IS NULL
    RETURNING id, policy, caller, recipe
), note AS (
    INSERT INTO windlass.audit_notes (at, event, caller, payload)
    SELECT windlass.clock(), 'policy_bypassed', caller,
           json_build_object('job_id', id, 'recipe', recipe, 'kernel', (SELECT kernel FROM windlass.policy_now))
    FROM gone
)
INSERT INTO windlass.verdicts (job_id, seq, edge, decision, rule, policy, reason, kernel, at)
SELECT g.id, coalesce((SELECT max(v.seq) FROM windlass.verdicts v WHERE v.job_id = g.id), 0) + 1, 'submit', 'allow',
       'windlass:kernel_bypass', g.policy, 'input policy fail-open: safety kernel unreachable',
       (SELECT kernel FROM windlass.policy_now), windlass.clock()
FROM gone g

-- name: kernel_judged
-- The kernel has judged these jobs afterwards. A job that it throttled is asked about again.
UPDATE windlass.jobs SET gate_at = NULL
WHERE id = ANY ($1::uuid[]) AND bypassed_at IS NOT NULL AND gate_tries IS NULL

-- name: kernel_reason
-- The kernel for which a new job waits, and its last error.
SELECT p.kernel, k.error
FROM windlass.jobs j CROSS JOIN windlass.policy_now p
LEFT JOIN windlass.kernels k ON k.name = p.kernel AND k.direction = 'input'
WHERE j.id = $1 AND j.policy IS NULL AND j.gate_at IS NOT NULL AND p.kernel IS NOT NULL
