-- The activity of open jobs. views/activity.py turns these facts into one word.
--
-- For each job: whether it is paused, an event or an approval that it waits for, otherwise its most important step. The
-- order is: a running step, work at a provider or in a child job, a ready step, a step that waits for a time. A fan-out
-- counts as its children. Within a job lower numbers start first. So the first $2 steps that are neither blocked nor
-- done include a running step, if there is one.

-- fragment: activity_approval
-- An open request to people, of the job or of one of its steps (by approvals_open).
(SELECT 'approval:' || a.id FROM windlass.approvals a
 WHERE a.job_id = j.id AND a.state IN ('PENDING', 'APPROVED') ORDER BY a.no LIMIT 1)

-- fragment: activity_step
-- The most important step.
FROM (
    SELECT s.no, s.state, s.waiting_for FROM windlass.steps s
    WHERE s.job_id = j.id AND NOT j.is_paused AND w.name IS NULL
      AND s.state IN ('RUNNING', 'PARKED', 'QUEUED', 'READY', 'HELD') AND s.waiting_for IS DISTINCT FROM 'fan'
    ORDER BY s.no LIMIT $2
) s
ORDER BY CASE WHEN s.state = 'RUNNING' THEN 0
              WHEN s.state <> 'PARKED' THEN 2
              WHEN s.waiting_for LIKE 'external%' OR s.waiting_for LIKE 'child%' THEN 1
              ELSE 3 END, s.no
LIMIT 1

-- fragment: activity_sum (of)
SELECT j.is_paused, w.name IS NOT NULL AS is_awaited, s.state, s.waiting_for, count(*) AS jobs
FROM (
    :of
) j
LEFT JOIN LATERAL (
    SELECT w.name FROM windlass.waits w WHERE w.job_id = j.id
    UNION ALL
    -- include: activity_approval
    LIMIT 1
) w ON true
LEFT JOIN LATERAL (
    SELECT s.state, split_part(s.waiting_for, ':', 1) AS waiting_for
    -- include: activity_step
) s ON true

-- name: activity_of
SELECT j.id, j.is_paused, w.name AS event, s.state, s.waiting_for
FROM windlass.jobs j
LEFT JOIN LATERAL (
    (SELECT 'event:' || w.name AS name FROM windlass.waits w WHERE w.job_id = j.id ORDER BY w.no LIMIT 1)
    UNION ALL
    -- include: activity_approval
    LIMIT 1
) w ON true
LEFT JOIN LATERAL (
    SELECT s.state, CASE WHEN s.waiting_for = 'slot' THEN coalesce((
        SELECT 'budget:' || k.behind FROM windlass.slots k
        WHERE k.job_id = j.id AND k.no = s.no AND k.state = 'WAITING' AND k.behind <> 'key'
    ), 'slot') ELSE s.waiting_for END AS waiting_for
    -- include: activity_step
) s ON true
WHERE j.id = ANY ($1::uuid[]) AND j.due_at IS NOT NULL

-- name: activity_count
-- Counts these facts over the open jobs of all callers: the $1 jobs that are due first (by jobs_due: open jobs only).
-- include: activity_sum (of: SELECT id, is_paused FROM windlass.jobs WHERE due_at IS NOT NULL ORDER BY due_at LIMIT $1)
GROUP BY 1, 2, 3, 4

-- name: activity_count_caller
-- Counts these facts for one caller: the open jobs among its newest $1 jobs (by jobs_caller).
-- include: activity_sum (of: SELECT id, is_paused, due_at FROM windlass.jobs WHERE caller = $3 ORDER BY id DESC LIMIT $1)
WHERE j.due_at IS NOT NULL
GROUP BY 1, 2, 3, 4

-- name: activity_waiting
-- The newest $3 jobs between two ids that wait for an event or an approval, or for the event named $4 (by waits_pkey and
-- approvals_open).
SELECT job_id FROM (
    (SELECT w.job_id FROM windlass.waits w
     WHERE w.job_id < $1 AND w.job_id >= $2 AND ($4::text IS NULL OR w.name = $4)
     GROUP BY w.job_id ORDER BY w.job_id DESC LIMIT $3)
    UNION
    (SELECT a.job_id FROM windlass.approvals a
     WHERE a.job_id < $1 AND a.job_id >= $2 AND $4 IS NULL AND a.state IN ('PENDING', 'APPROVED')
     GROUP BY a.job_id ORDER BY a.job_id DESC LIMIT $3)
) AS found
ORDER BY job_id DESC LIMIT $3

-- name: activity_open
-- Open jobs, $1 at most (by jobs_due).
SELECT id FROM windlass.jobs WHERE due_at IS NOT NULL ORDER BY due_at LIMIT $1
