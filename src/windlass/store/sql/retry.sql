-- Running a job again: the rows that the new job takes from the old job.

-- name: redriven_put
-- Records that a job was run again. Returns true if it had been neither run again nor discarded before.
INSERT INTO windlass.redriven AS r (job_id, new_job, at, by)
VALUES ($1, $2, windlass.clock(), $3)
ON CONFLICT (job_id) DO UPDATE SET new_job = excluded.new_job, at = excluded.at, by = excluded.by
RETURNING xmax = 0

-- name: retry_job
-- This transaction inserted the job, so no worker can have claimed its steps.
UPDATE windlass.jobs SET steps_total = $2, steps_open = $3, event_seq = 2, state = $4 WHERE id = $1

-- name: retry_step
-- OFFSET 0 makes the planner go from the given steps to their rows. Otherwise it compares each row with all given
-- steps.
UPDATE windlass.steps s
SET state = d.state, unmet = d.unmet, fan = d.fan, fanned = d.fanned, output = d.output, waiting_for = d.waiting_for,
    holds = d.holds, finished_at = CASE WHEN d.state IN ('COMPLETED', 'SKIPPED') THEN windlass.clock() END
FROM (
    SELECT :job_id::uuid AS job_id, u.*
    FROM unnest(:no::int[], :state::text[], :unmet::int[], :fan::int[], :fanned::int[], :output::json[],
                :waiting_for::text[], :holds::smallint[])
        AS u (no, state, unmet, fan, fanned, output, waiting_for, holds)
    OFFSET 0
) AS d
WHERE s.job_id = d.job_id AND s.no = d.no

-- name: retry_children
-- A child has the lane of its fan-out, whose number is the child's node.
INSERT INTO windlass.steps
    (job_id, no, node, index, state, queue, priority, unmet, timeout_s, item, output, finished_at, lane, holds)
SELECT :job_id, d.no, d.node, d.index, d.state, d.queue, j.priority, 0, d.timeout_s, d.item, d.output,
       CASE WHEN d.state = 'COMPLETED' THEN windlass.clock() END, fan.lane, d.holds
FROM unnest(:no::int[], :node::int[], :index::int[], :state::text[], :queue::text[], :timeout_s::real[], :item::json[],
            :output::json[], :holds::smallint[])
    AS d (no, node, index, state, queue, timeout_s, item, output, holds), windlass.jobs j, windlass.steps fan
WHERE j.id = :job_id AND fan.job_id = :job_id AND fan.no = d.node

-- name: retry_event
INSERT INTO windlass.events (job_id, seq, at, type, source, payload, correlation_id)
VALUES ($1, 2, windlass.clock(), 'job.kept', $2, $3, $4)
