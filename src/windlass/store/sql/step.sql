-- Claims steps, and finds the steps that are due for the router, a timer or the rescuer.

-- fragment: claim_lane_seen
SELECT job_id, no, priority, lane FROM windlass.steps
WHERE state = 'QUEUED' AND queue = :queue::text
ORDER BY lane, priority DESC, job_id, no
LIMIT :looks

-- fragment: claim_lane_picked
-- Conditions on the whole lane are tested once. The order includes the lane, as the index does. Without the lane, a
-- sort would read and filter all jobs that were seen, instead of only the jobs that are taken.
FROM seen JOIN windlass.jobs j ON j.id = seen.job_id
WHERE j.state IN ('QUEUED', 'DISPATCHING', 'PROCESSING', 'PREVIEW') AND NOT j.is_paused
  -- Once for the statement. A job whose good verdict is older is judged again (engine/recheck.py).
  AND coalesce(j.policy, 0) >= (SELECT windlass.policy_floor())
  AND (SELECT :handlers::text IS NULL OR strpos(:handlers, ' ' || left(lane, strpos(lane, ' '))) > 0 FROM seen LIMIT 1)
  AND NOT EXISTS (
      SELECT FROM windlass.steps s
      WHERE s.state = 'QUEUED' AND s.queue = :queue AND s.lane > (SELECT lane FROM seen LIMIT 1)
  )
  AND EXISTS (
      SELECT FROM windlass.workers w WHERE w.id = :worker AND w.lost_at IS NULL AND w.lease_until > windlass.clock()
  )
ORDER BY seen.lane, seen.priority DESC, seen.job_id, seen.no

-- fragment: claim_job_columns
j.state AS job_state, j.event_seq, j.version, j.plan, j.deadline_at,
j.steps_total, j.steps_open, j.steps_failed, j.parent_job IS NOT NULL AS has_parent, j.correlation_id

-- fragment: claim_step (now)
UPDATE windlass.steps s
SET state = 'RUNNING',
    attempt = s.attempt + 1,
    worker = :worker,
    started_at = :now,
    wake_at = :now + make_interval(secs => s.timeout_s)
FROM picked
-- `|| ''` hides the condition from the planner, which would otherwise read the whole index steps_queued.
WHERE s.job_id = picked.job_id AND s.no = picked.no AND s.state || '' = 'QUEUED'

-- fragment: claim_written
-- Numbers the steps of each job, and writes the jobs and events.
numbered AS (
    SELECT *, row_number() OVER (PARTITION BY job_id ORDER BY no) AS i, count(*) OVER (PARTITION BY job_id) AS n,
           job_state IN ('QUEUED', 'DISPATCHING') AS is_first
    FROM taken
), job AS (
    UPDATE windlass.jobs j
    SET event_seq = j.event_seq + t.n + t.is_first::int,
        version = j.version + t.is_first::int,
        state = CASE WHEN t.is_first THEN 'PROCESSING' ELSE j.state END,
        started_at = coalesce(j.started_at, (SELECT windlass.clock()))
    FROM numbered t
    WHERE t.i = 1 AND j.id = t.job_id
), event AS (
    INSERT INTO windlass.events (job_id, seq, at, type, source, no, attempt, payload, correlation_id)
    SELECT job_id, event_seq + is_first::int + i, (SELECT windlass.clock()), 'step.running', 'worker', no, attempt,
           :told::json, correlation_id
    FROM numbered
    UNION ALL
    SELECT job_id, event_seq + 1, (SELECT windlass.clock()), 'job.processing', 'worker', NULL, NULL, NULL, correlation_id
    FROM numbered WHERE is_first AND i = 1
)

-- fragment: claim_columns
-- `engine/claim.py` reads the columns of a row by position.
job_id, no, attempt, plan, node, index, item, checkpoint, failures, timeout_s,
extract(epoch FROM deadline_at - (SELECT windlass.clock()))::float8 AS deadline_s,
version + is_first::int AS version, job_state = 'PREVIEW' AS is_preview,
-- A claim takes nothing from a paused job; `step_held`, which has the same columns, may.
false AS is_paused, steps_total, steps_open, steps_failed, has_parent, correlation_id, losses,
-- Once per job, and only if it is small. The input must not pass through the parts above, which would unpack it for
-- every step.
CASE WHEN i = 1 THEN (
    SELECT j.input FROM windlass.jobs j WHERE j.id = job_id AND pg_column_size(j.input) < 2000
) END AS input,

-- name: step_claim
-- One statement and one commit; a worker without a live lease gets nothing. `lane` walks the lanes of each queue by
-- skip scan: one index probe per lane, for any number of waiting steps. The walk starts after the lane where the worker
-- last stopped (`:places`), wraps round, and takes at most `:lanes_max` lanes per queue. `:handlers` are the worker's
-- handlers, each between spaces. From a lane of a handler that the worker lacks, the walk jumps to the worker's next
-- handler.
--
-- `seen` reads a few more steps than the claim takes: `:looks` steps, in equal parts from the lanes. They are ordered
-- by priority and then in turns: the oldest step of every caller, then the second oldest, and so on. Within a turn the
-- caller after `:caller`, which was served last, is first. If there are more lanes than were walked, the order of the
-- walk decides instead, so that every lane gets its turn.
--
-- The statement skips jobs that another transaction writes to, and locks the others. A step that another worker has
-- claimed meanwhile fails the test on its state.
WITH lane AS MATERIALIZED (
    SELECT l.queue, l.lane, l.pos, l.n, l.caller, CASE WHEN l.is_cut THEN l.pos ELSE l.caller END AS ring, l.is_cut
    FROM (
        SELECT q.queue, found.lane, row_number() OVER () AS pos, count(*) OVER () AS n,
               bool_or(found.place >= :lanes_max) OVER () AS is_cut,
               dense_rank() OVER (ORDER BY substr(found.lane, strpos(found.lane, ' ') + 1) <= :caller COLLATE "C",
                                           substr(found.lane, strpos(found.lane, ' ') + 1)) AS caller
        FROM windlass.workers w
        CROSS JOIN unnest(:queues::text[], :places::text[]) AS q (queue, place)
        CROSS JOIN LATERAL (
            WITH RECURSIVE walk AS (
                -- No handler's name starts with "~", so every lane sorts before it.
                SELECT NULL COLLATE "C" AS lane, q.place COLLATE "C" AS after, '~' COLLATE "C" AS upto,
                       false AS is_mine
                UNION ALL
                SELECT next.lane,
                       CASE WHEN own.is_mine THEN next.lane ELSE (
                           SELECT min(h.name COLLATE "C") FROM string_to_table(:handlers, ' ') AS h (name)
                           WHERE h.name COLLATE "C" > split_part(next.lane, ' ', 1)
                       ) END,
                       next.upto, own.is_mine
                FROM walk
                CROSS JOIN LATERAL (
                    (SELECT s.lane, walk.upto FROM windlass.steps s
                     WHERE s.state = 'QUEUED' AND s.queue = q.queue AND s.lane > walk.after AND s.lane <= walk.upto
                     ORDER BY s.lane LIMIT 1)
                    UNION ALL
                    (SELECT s.lane, q.place COLLATE "C" FROM windlass.steps s
                     WHERE s.state = 'QUEUED' AND s.queue = q.queue AND s.lane <= q.place COLLATE "C"
                       AND walk.upto = '~'
                     ORDER BY s.lane LIMIT 1)
                    LIMIT 1
                ) AS next
                CROSS JOIN LATERAL (
                    -- The lane '' leaves only the space, which is always found.
                    SELECT :handlers::text IS NULL OR strpos(
                               :handlers, ' ' || left(next.lane, strpos(next.lane, ' '))
                           ) > 0 AS is_mine
                ) AS own
            )
            SELECT walk.lane, row_number() OVER () AS place FROM walk WHERE walk.is_mine LIMIT :lanes_max
        ) AS found
        WHERE w.id = :worker AND w.lost_at IS NULL AND w.lease_until > windlass.clock()
    ) AS l
    -- Always true. The planner assumes that the condition is rare and expects few steps, so it never scans whole
    -- tables.
    WHERE l.n + 0 = l.n
), seen AS MATERIALIZED (
    SELECT t.job_id, t.no, t.pos, t.n, t.is_cut, row_number() OVER () AS rank
    FROM (
        SELECT c.job_id, c.no, lane.pos, lane.n, lane.is_cut
        FROM lane
        CROSS JOIN LATERAL (
            SELECT s.job_id, s.no, s.priority FROM windlass.steps s
            WHERE s.state = 'QUEUED' AND s.queue = lane.queue AND s.lane = lane.lane
            ORDER BY s.priority DESC, s.job_id, s.no
            LIMIT greatest(2, :looks / lane.n)
        ) AS c
        ORDER BY c.priority DESC,
                 row_number() OVER (PARTITION BY lane.caller ORDER BY c.priority DESC, c.job_id, c.no),
                 lane.ring, c.job_id, c.no
        LIMIT :looks
    ) AS t
), picked AS MATERIALIZED (
    SELECT seen.job_id, seen.no, seen.pos, seen.rank, seen.n AS lanes, seen.is_cut,
           -- include: claim_job_columns
    FROM seen JOIN windlass.jobs j ON j.id = seen.job_id
    WHERE j.state IN ('QUEUED', 'DISPATCHING', 'PROCESSING', 'PREVIEW') AND NOT j.is_paused
      -- Once for the statement. A job whose good verdict is older is judged again (engine/recheck.py).
      AND coalesce(j.policy, 0) >= (SELECT windlass.policy_floor())
    ORDER BY seen.rank
    LIMIT :most
    FOR UPDATE OF j SKIP LOCKED
), taken AS (
    -- include: claim_step (now: (SELECT windlass.clock()))
    RETURNING s.node, s.index, s.attempt, s.failures, s.losses, s.item, s.checkpoint, s.timeout_s, s.queue, s.lane, picked.*
),
-- include: claim_written
SELECT
       -- include: claim_columns
       (SELECT count(*) FROM seen) AS seen,
       -- The start of the next walk; with one lane there is no choice. A lane that was read up to its part may hold
       -- more steps, and so may the lanes beyond the end of the walk.
       CASE WHEN lanes > 1 THEN queue END AS queue, CASE WHEN lanes > 1 THEN lane END AS lane, pos, rank,
       lanes > 1 AND (is_cut OR EXISTS (
           SELECT FROM seen GROUP BY pos HAVING count(*) >= greatest(2, :looks / min(n))
       )) AS is_full,
       -- A claim need not wait for the disk (engine/claim.py).
       (SELECT set_config('synchronous_commit', 'off', true)) AS commits
FROM numbered

-- name: step_claim_lane
-- Claims from one queue that holds steps of one lane only; step_claim handles a queue with several lanes. Walking the
-- lanes and numbering turns would cost a quarter of the claim.
WITH seen AS MATERIALIZED (
    -- include: claim_lane_seen
), picked AS MATERIALIZED (
    SELECT seen.job_id, seen.no,
           -- include: claim_job_columns
    -- include: claim_lane_picked
    LIMIT :most
    FOR UPDATE OF j SKIP LOCKED
), taken AS (
    -- include: claim_step (now: (SELECT windlass.clock()))
    RETURNING s.node, s.index, s.attempt, s.failures, s.losses, s.item, s.checkpoint, s.timeout_s, picked.*
),
-- include: claim_written
SELECT
       -- include: claim_columns
       (SELECT count(*) FROM seen) AS seen, false AS is_full,
       -- A claim need not wait for the disk (engine/claim.py).
       (SELECT set_config('synchronous_commit', 'off', true)) AS commits
FROM numbered

-- name: step_claim_one
-- Claims one step of a queue with one lane. Numbering and counting steps per job costs as much as claiming a lone step.
WITH seen AS MATERIALIZED (
    -- include: claim_lane_seen
), picked AS MATERIALIZED (
    SELECT seen.job_id, seen.no,
           -- include: claim_job_columns
           , CASE WHEN pg_column_size(j.input) < 2000 THEN j.input END AS input,
           j.state IN ('QUEUED', 'DISPATCHING') AS is_first, windlass.clock() AS now
    -- include: claim_lane_picked
    LIMIT 1
    FOR UPDATE OF j SKIP LOCKED
), taken AS (
    -- include: claim_step (now: picked.now)
    RETURNING s.node, s.index, s.attempt, s.failures, s.losses, s.item, s.checkpoint, s.timeout_s, picked.*
), job AS (
    UPDATE windlass.jobs j
    SET event_seq = j.event_seq + 1 + t.is_first::int,
        version = j.version + t.is_first::int,
        state = CASE WHEN t.is_first THEN 'PROCESSING' ELSE j.state END,
        started_at = coalesce(j.started_at, t.now)
    FROM taken t
    WHERE j.id = t.job_id
), event AS (
    INSERT INTO windlass.events (job_id, seq, at, type, source, no, attempt, payload, correlation_id)
    SELECT job_id, event_seq + is_first::int + 1, now, 'step.running', 'worker', no, attempt, :told::json,
           correlation_id
    FROM taken
    UNION ALL
    SELECT job_id, event_seq + 1, now, 'job.processing', 'worker', NULL, NULL, NULL, correlation_id
    FROM taken WHERE is_first
)
SELECT job_id, no, attempt, plan, node, index, item, checkpoint, failures, timeout_s,
       extract(epoch FROM deadline_at - now)::float8 AS deadline_s,
       version + is_first::int AS version, job_state = 'PREVIEW' AS is_preview, false AS is_paused,
       steps_total, steps_open, steps_failed, has_parent, correlation_id, losses, input,
       (SELECT count(*) FROM seen) AS seen, false AS is_full,
       set_config('synchronous_commit', 'off', true) AS commits
FROM taken

-- name: step_first_queued
-- Explains why a claim found nothing: the state of the worker's lease, and the first job that waits in a lane of the
-- worker's handlers ($3). If every candidate was locked, the claim should wait for that job's lock. If the job is stale,
-- it must be judged again. Two index probes find out whether its queue holds another lane.
SELECT w.lost_at IS NULL AS is_known, w.lease_until > windlass.clock() AS is_live, first.job_id, first.queue, first.lane,
       CASE WHEN first.job_id IS NOT NULL THEN (
           SELECT coalesce(j.policy, 0) < (SELECT windlass.policy_floor()) FROM windlass.jobs j WHERE j.id = first.job_id
       ) END AS is_stale,
       NOT EXISTS (
           SELECT FROM windlass.steps s WHERE s.state = 'QUEUED' AND s.queue = first.queue AND s.lane < first.lane
       ) AND NOT EXISTS (
           SELECT FROM windlass.steps s WHERE s.state = 'QUEUED' AND s.queue = first.queue AND s.lane > first.lane
       ) AS is_one_lane
FROM windlass.workers w
LEFT JOIN LATERAL (
    SELECT c.job_id, q.queue, c.lane
    FROM unnest($2::text[]) AS q (queue)
    CROSS JOIN LATERAL (
        WITH RECURSIVE walk AS (
            SELECT NULL COLLATE "C" AS lane, NULL::smallint AS priority, NULL::uuid AS job_id, '' COLLATE "C" AS from_,
                   false AS is_mine
            UNION ALL
            SELECT s.lane, s.priority, s.job_id, (
                       SELECT min(h.name COLLATE "C") FROM string_to_table($3, ' ') AS h (name)
                       WHERE h.name COLLATE "C" > split_part(s.lane, ' ', 1)
                   ),
                   $3::text IS NULL OR strpos($3, ' ' || left(s.lane, strpos(s.lane, ' '))) > 0
            FROM walk
            CROSS JOIN LATERAL (
                SELECT s.lane, s.priority, s.job_id FROM windlass.steps s
                WHERE s.state = 'QUEUED' AND s.queue = q.queue AND s.lane >= walk.from_
                ORDER BY s.lane, s.priority DESC, s.job_id, s.no LIMIT 1
            ) AS s
        )
        SELECT walk.priority, walk.job_id, walk.lane FROM walk WHERE walk.is_mine LIMIT 1
    ) AS c
    ORDER BY c.priority DESC, c.job_id
    LIMIT 1
) AS first ON true
WHERE w.id = $1

-- name: step_stale
-- The jobs at the front of a lane whose good verdict is older than the policy allows.
SELECT DISTINCT j.id
FROM (
    SELECT job_id FROM windlass.steps WHERE state = 'QUEUED' AND queue = $1 AND lane = $2
    ORDER BY priority DESC, job_id, no LIMIT $3
) AS s
JOIN windlass.jobs j ON j.id = s.job_id
WHERE coalesce(j.policy, 0) < (SELECT windlass.policy_floor())

-- name: step_fence
-- Takes the lock of the policy before the lock of a job.
SELECT windlass.policy_floor()

-- name: step_waiting
-- The queues that hold a step to claim, and whether the worker holds an attempt. A worker asks this periodically: a
-- bell may be lost, and a failover may bring back an attempt whose end was acknowledged.
SELECT ARRAY(
    SELECT q.queue FROM unnest($1::text[]) AS q (queue)
    WHERE EXISTS (SELECT FROM windlass.steps s WHERE s.state = 'QUEUED' AND s.queue = q.queue)
) AS queues,
EXISTS (SELECT FROM windlass.steps s WHERE s.worker = $2 AND s.state = 'RUNNING') AS is_holding

-- name: step_held
-- The attempts that a worker holds according to the database, with the columns of a claim in the same order.
SELECT s.job_id, s.no, s.attempt, j.plan, s.node, s.index, s.item, s.checkpoint, s.failures, s.timeout_s,
       extract(epoch FROM j.deadline_at - windlass.clock())::float8 AS deadline_s,
       j.version, j.state = 'PREVIEW' AS is_preview, j.is_paused, j.steps_total, j.steps_open, j.steps_failed,
       j.parent_job IS NOT NULL AS has_parent, j.correlation_id, s.losses, j.input
FROM windlass.steps s JOIN windlass.jobs j ON j.id = s.job_id
WHERE s.worker = $1 AND s.state = 'RUNNING'

-- name: step_held_keys
SELECT job_id, no, attempt FROM windlass.steps WHERE worker = $1 AND state = 'RUNNING'

-- name: step_place
SELECT s.job_id, s.no, s.node, j.plan
FROM unnest($1::uuid[], $2::int[]) AS t (job_id, no)
JOIN windlass.steps s ON s.job_id = t.job_id AND s.no = t.no
JOIN windlass.jobs j ON j.id = t.job_id

-- name: step_ready
-- Steps for the router, of jobs that are not paused. $2 are callers whose turn has not come. $3 are callers without
-- room for more steps: their fan-outs in progress wait.
SELECT s.job_id, s.no, s.node, s.index, s.item, s.fan, s.fanned, j.plan, j.input, j.depth, j.caller
FROM windlass.steps s JOIN windlass.jobs j ON j.id = s.job_id
WHERE s.state = 'READY' AND NOT j.is_paused AND j.caller <> ALL ($2::text[])
  AND NOT (s.fan IS NOT NULL AND j.caller = ANY ($3::text[]))
ORDER BY s.job_id, s.no
LIMIT $1

-- name: step_ready_due
SELECT windlass.clock() WHERE EXISTS (
    SELECT FROM windlass.steps s JOIN windlass.jobs j ON j.id = s.job_id WHERE s.state = 'READY' AND NOT j.is_paused
)

-- name: step_due
SELECT s.job_id, s.no, s.node, j.plan
FROM windlass.steps s JOIN windlass.jobs j ON j.id = s.job_id
WHERE s.state = 'PARKED' AND s.wake_at <= windlass.clock()
ORDER BY s.wake_at, s.job_id, s.no
LIMIT $1

-- name: step_lost
-- Attempts of lost workers, and attempts that exceeded their time limit plus a grace period ($2), in which the worker
-- itself reports. After an outage the grace period starts at its end: before that no report could arrive.
SELECT s.job_id, s.no, s.node, s.attempt, s.worker, j.plan, (w.id IS NULL OR w.lost_at IS NOT NULL) AS is_lost
FROM windlass.steps s
JOIN windlass.jobs j ON j.id = s.job_id
LEFT JOIN windlass.workers w ON w.id = s.worker
WHERE s.state = 'RUNNING'
  AND (w.id IS NULL OR w.lost_at IS NOT NULL OR
       greatest(s.wake_at, (SELECT back_at FROM windlass.installation)) + make_interval(secs => $2) < windlass.clock())
ORDER BY s.job_id, s.no
LIMIT $1

-- name: step_fan_outputs
SELECT index, state, output, (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps WHERE job_id = $1 AND node = $2 AND index IS NOT NULL ORDER BY index

-- name: step_outputs_many
SELECT s.job_id, s.no, s.state, s.fan, s.output, (SELECT j.state FROM windlass.jobs j WHERE j.id = s.job_id) AS job_state
FROM unnest($1::uuid[], $2::int[]) AS t (job_id, no)
JOIN windlass.steps s ON s.job_id = t.job_id AND s.no = t.no

-- name: step_rows
SELECT no, node, index, state, queue, unmet, fan, fanned, item, output, timeout_s,
       (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps WHERE job_id = $1 ORDER BY no

-- name: step_states
-- The columns of `step_rows`, without the values that may be large.
SELECT no, node, index, state, unmet, fan, fanned, NULL AS item, NULL AS output,
       (SELECT j.state FROM windlass.jobs j WHERE j.id = $1) AS job_state
FROM windlass.steps WHERE job_id = $1 ORDER BY no
