-- Claiming steps, and finding those that time or the router must look at.

-- name: step_claim
-- One statement, one commit, and nothing for a worker whose lease is over. `lane` walks the lanes of each queue by
-- skip scan: one probe of the index a lane, however many steps wait in it. The walk begins behind the lane where the
-- worker stopped the last time ($7), wraps round, and takes at most $9 lanes a queue; from a lane of a handler that the
-- worker lacks ($6: the names it has, each between spaces) it jumps to the first lane of the next handler that it has.
-- `seen` looks a little further than the claim takes: $4 steps, in equal parts from the lanes, by priority and then in
-- turns: the oldest step of every caller, then the second oldest, and so on. Within a turn the caller after $8, the one
-- served last, is first. If there are more lanes than were walked, the order of the walk decides instead, so that every
-- lane has its turn. The statement skips the jobs that another transaction is writing to, and locks the rest; a step
-- that was claimed meanwhile fails the test on its state.
WITH lane AS MATERIALIZED (
    SELECT l.queue, l.lane, l.pos, l.n, l.caller, CASE WHEN l.is_cut THEN l.pos ELSE l.caller END AS ring, l.is_cut
    FROM (
        SELECT q.queue, found.lane, row_number() OVER () AS pos, count(*) OVER () AS n,
               bool_or(found.place >= $9) OVER () AS is_cut,
               dense_rank() OVER (ORDER BY substr(found.lane, strpos(found.lane, ' ') + 1) <= $8 COLLATE "C",
                                           substr(found.lane, strpos(found.lane, ' ') + 1)) AS caller
        FROM windlass.workers w
        CROSS JOIN unnest($2::text[], $7::text[]) AS q (queue, place)
        CROSS JOIN LATERAL (
            WITH RECURSIVE walk AS (
                -- No handler's name begins with "~", so no lane is behind it.
                SELECT NULL COLLATE "C" AS lane, q.place COLLATE "C" AS after, '~' COLLATE "C" AS upto,
                       false AS is_mine
                UNION ALL
                SELECT next.lane,
                       CASE WHEN own.is_mine THEN next.lane ELSE (
                           SELECT min(h.name COLLATE "C") FROM string_to_table($6, ' ') AS h (name)
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
                    -- Of the lane '' nothing is left but the space, which is always found.
                    SELECT $6::text IS NULL OR strpos($6, ' ' || left(next.lane, strpos(next.lane, ' '))) > 0 AS is_mine
                ) AS own
            )
            SELECT walk.lane, row_number() OVER () AS place FROM walk WHERE walk.is_mine LIMIT $9
        ) AS found
        WHERE w.id = $1 AND w.lost_at IS NULL AND w.lease_until > windlass.clock()
    ) AS l
    -- Always so. The planner takes it for rare, expects few steps, and so never reads whole tables to find them.
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
            LIMIT greatest(2, $4 / lane.n)
        ) AS c
        ORDER BY c.priority DESC,
                 row_number() OVER (PARTITION BY lane.caller ORDER BY c.priority DESC, c.job_id, c.no),
                 lane.ring, c.job_id, c.no
        LIMIT $4
    ) AS t
), picked AS MATERIALIZED (
    SELECT seen.job_id, seen.no, seen.pos, seen.rank, seen.n AS lanes, seen.is_cut,
           j.state AS job_state, j.event_seq, j.version, j.plan, j.deadline_at,
           j.steps_total, j.steps_open, j.steps_failed, j.parent_job IS NOT NULL AS has_parent, j.correlation_id
    FROM seen JOIN windlass.jobs j ON j.id = seen.job_id
    WHERE j.state IN ('QUEUED', 'DISPATCHING', 'PROCESSING', 'PREVIEW') AND NOT j.is_paused
    ORDER BY seen.rank
    LIMIT $3
    FOR UPDATE OF j SKIP LOCKED
), taken AS (
    UPDATE windlass.steps s
    SET state = 'RUNNING',
        attempt = s.attempt + 1,
        worker = $1,
        started_at = (SELECT windlass.clock()),
        wake_at = (SELECT windlass.clock()) + make_interval(secs => s.timeout_s)
    FROM picked
    -- Written so that the planner does not take it for the condition of the index steps_queued, and read all of that.
    WHERE s.job_id = picked.job_id AND s.no = picked.no AND s.state || '' = 'QUEUED'
    RETURNING s.node, s.index, s.attempt, s.failures, s.losses, s.item, s.checkpoint, s.timeout_s, s.queue, s.lane, picked.*
), numbered AS (
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
           $5::json, correlation_id
    FROM numbered
    UNION ALL
    SELECT job_id, event_seq + 1, (SELECT windlass.clock()), 'job.processing', 'worker', NULL, NULL, NULL, correlation_id
    FROM numbered WHERE is_first AND i = 1
)
SELECT job_id, no, attempt, plan, node, index, item, checkpoint, failures, timeout_s,
       extract(epoch FROM deadline_at - (SELECT windlass.clock()))::float8 AS deadline_s,
       version + is_first::int AS version, job_state = 'PREVIEW' AS is_preview,
       -- A claim takes nothing from a paused job; what a worker is told again later (step_held) may be of one.
       false AS is_paused, steps_total, steps_open, steps_failed, has_parent, correlation_id, losses,
       -- Once per job, and only if it is small. It must not pass through the parts above, which would unpack it for
       -- every step.
       CASE WHEN i = 1 THEN (
           SELECT j.input FROM windlass.jobs j WHERE j.id = job_id AND pg_column_size(j.input) < 2000
       ) END AS input,
       (SELECT count(*) FROM seen) AS seen,
       -- Where the next walk begins; with one lane there is no choice. A lane that was read to its part may hold more,
       -- and so may the lanes beyond the end of the walk.
       CASE WHEN lanes > 1 THEN queue END AS queue, CASE WHEN lanes > 1 THEN lane END AS lane, pos, rank,
       lanes > 1 AND (is_cut OR EXISTS (
           SELECT FROM seen GROUP BY pos HAVING count(*) >= greatest(2, $4 / min(n))
       )) AS is_full,
       -- A claim need not wait for the disk (engine/claim.py).
       (SELECT set_config('synchronous_commit', 'off', true)) AS commits
FROM numbered

-- name: step_claim_lane
-- Claims from one queue ($2) that holds steps of one lane only; a queue with several lanes is left to step_claim. To
-- walk the lanes and to number turns would cost a quarter of the claim. What is the same for the whole lane is tested
-- once. `picked` is ordered by the lane too, like the index: a sort would read and filter $4 jobs instead of $3.
WITH seen AS MATERIALIZED (
    SELECT job_id, no, priority, lane FROM windlass.steps
    WHERE state = 'QUEUED' AND queue = $2::text
    ORDER BY lane, priority DESC, job_id, no
    LIMIT $4
), picked AS MATERIALIZED (
    SELECT seen.job_id, seen.no, j.state AS job_state, j.event_seq, j.version, j.plan, j.deadline_at,
           j.steps_total, j.steps_open, j.steps_failed, j.parent_job IS NOT NULL AS has_parent, j.correlation_id
    FROM seen JOIN windlass.jobs j ON j.id = seen.job_id
    WHERE j.state IN ('QUEUED', 'DISPATCHING', 'PROCESSING', 'PREVIEW') AND NOT j.is_paused
      AND (SELECT $6::text IS NULL OR strpos($6, ' ' || left(lane, strpos(lane, ' '))) > 0 FROM seen LIMIT 1)
      AND NOT EXISTS (
          SELECT FROM windlass.steps s
          WHERE s.state = 'QUEUED' AND s.queue = $2 AND s.lane > (SELECT lane FROM seen LIMIT 1)
      )
      AND EXISTS (
          SELECT FROM windlass.workers w WHERE w.id = $1 AND w.lost_at IS NULL AND w.lease_until > windlass.clock()
      )
    ORDER BY seen.lane, seen.priority DESC, seen.job_id, seen.no
    LIMIT $3
    FOR UPDATE OF j SKIP LOCKED
), taken AS (
    UPDATE windlass.steps s
    SET state = 'RUNNING',
        attempt = s.attempt + 1,
        worker = $1,
        started_at = (SELECT windlass.clock()),
        wake_at = (SELECT windlass.clock()) + make_interval(secs => s.timeout_s)
    FROM picked
    -- Written so that the planner does not take it for the condition of the index steps_queued, and read all of that.
    WHERE s.job_id = picked.job_id AND s.no = picked.no AND s.state || '' = 'QUEUED'
    RETURNING s.node, s.index, s.attempt, s.failures, s.losses, s.item, s.checkpoint, s.timeout_s, picked.*
), numbered AS (
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
           $5::json, correlation_id
    FROM numbered
    UNION ALL
    SELECT job_id, event_seq + 1, (SELECT windlass.clock()), 'job.processing', 'worker', NULL, NULL, NULL, correlation_id
    FROM numbered WHERE is_first AND i = 1
)
SELECT job_id, no, attempt, plan, node, index, item, checkpoint, failures, timeout_s,
       extract(epoch FROM deadline_at - (SELECT windlass.clock()))::float8 AS deadline_s,
       version + is_first::int AS version, job_state = 'PREVIEW' AS is_preview,
       -- A claim takes nothing from a paused job; what a worker is told again later (step_held) may be of one.
       false AS is_paused, steps_total, steps_open, steps_failed, has_parent, correlation_id, losses,
       -- Once per job, and only if it is small. It must not pass through the parts above, which would unpack it for
       -- every step.
       CASE WHEN i = 1 THEN (
           SELECT j.input FROM windlass.jobs j WHERE j.id = job_id AND pg_column_size(j.input) < 2000
       ) END AS input,
       (SELECT count(*) FROM seen) AS seen, false AS is_full,
       -- A claim need not wait for the disk (engine/claim.py).
       (SELECT set_config('synchronous_commit', 'off', true)) AS commits
FROM numbered

-- name: step_claim_one
-- The same for its first step: what numbers and counts steps per job costs as much as taking a lone one.
WITH seen AS MATERIALIZED (
    SELECT job_id, no, priority, lane FROM windlass.steps
    WHERE state = 'QUEUED' AND queue = $2::text
    ORDER BY lane, priority DESC, job_id, no
    LIMIT $3
), picked AS MATERIALIZED (
    SELECT seen.job_id, seen.no, j.state AS job_state, j.event_seq, j.version, j.plan, j.deadline_at,
           j.steps_total, j.steps_open, j.steps_failed, j.parent_job IS NOT NULL AS has_parent, j.correlation_id,
           CASE WHEN pg_column_size(j.input) < 2000 THEN j.input END AS input,
           j.state IN ('QUEUED', 'DISPATCHING') AS is_first, windlass.clock() AS now
    FROM seen JOIN windlass.jobs j ON j.id = seen.job_id
    WHERE j.state IN ('QUEUED', 'DISPATCHING', 'PROCESSING', 'PREVIEW') AND NOT j.is_paused
      AND (SELECT $5::text IS NULL OR strpos($5, ' ' || left(lane, strpos(lane, ' '))) > 0 FROM seen LIMIT 1)
      AND NOT EXISTS (
          SELECT FROM windlass.steps s
          WHERE s.state = 'QUEUED' AND s.queue = $2 AND s.lane > (SELECT lane FROM seen LIMIT 1)
      )
      AND EXISTS (
          SELECT FROM windlass.workers w WHERE w.id = $1 AND w.lost_at IS NULL AND w.lease_until > windlass.clock()
      )
    ORDER BY seen.lane, seen.priority DESC, seen.job_id, seen.no
    LIMIT 1
    FOR UPDATE OF j SKIP LOCKED
), taken AS (
    UPDATE windlass.steps s
    SET state = 'RUNNING',
        attempt = s.attempt + 1,
        worker = $1,
        started_at = picked.now,
        wake_at = picked.now + make_interval(secs => s.timeout_s)
    FROM picked
    WHERE s.job_id = picked.job_id AND s.no = picked.no AND s.state || '' = 'QUEUED'
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
    SELECT job_id, event_seq + is_first::int + 1, now, 'step.running', 'worker', no, attempt, $4::json, correlation_id
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

-- name: job_inputs
SELECT id, input FROM windlass.jobs WHERE id = ANY($1::uuid[])

-- name: step_first_queued
-- Why a claim found nothing: what became of the worker's lease, and the first job that waits in a lane of a handler that
-- the worker has ($3), whose lock the claim should wait for when every candidate was skipped. Two probes of the index
-- tell whether its queue holds another lane.
SELECT w.lost_at IS NULL AS is_known, w.lease_until > windlass.clock() AS is_live, first.job_id,
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

-- name: step_waiting
-- Which of these queues hold anything. An idle worker asks this now and then, as a bell may be lost.
SELECT q.queue FROM unnest($1::text[]) AS q (queue)
WHERE EXISTS (SELECT FROM windlass.steps s WHERE s.state = 'QUEUED' AND s.queue = q.queue)

-- name: step_held
-- What a worker holds, as the database knows it; in the order of a claim's columns.
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
-- Steps for the router, of jobs that nobody has paused. $2 are callers whose turn it is not, $3 callers that have no room
-- for more steps: a fan-out of theirs that has begun waits.
SELECT s.job_id, s.no, s.node, s.index, s.item, s.fan, s.fanned, j.plan, j.input, j.depth, j.caller
FROM windlass.steps s JOIN windlass.jobs j ON j.id = s.job_id
WHERE s.state = 'READY' AND NOT j.is_paused AND j.caller <> ALL ($2::text[])
  AND NOT (s.fan IS NOT NULL AND j.caller = ANY ($3::text[]))
ORDER BY s.job_id, s.no
LIMIT $1

-- name: step_due
SELECT s.job_id, s.no, s.node, j.plan
FROM windlass.steps s JOIN windlass.jobs j ON j.id = s.job_id
WHERE s.state = 'PARKED' AND s.wake_at <= windlass.clock()
ORDER BY s.wake_at, s.job_id, s.no
LIMIT $1

-- name: step_lost
-- Attempts whose worker is gone, and attempts that ran past their time and a grace, in which the worker reports that
-- itself. The grace also counts from the end of an outage: until then no report could arrive.
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
