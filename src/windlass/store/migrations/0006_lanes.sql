-- Workers claim only the steps that they have handlers for, callers take turns, and an outage is not a worker's silence.

-- The handler that a step needs and the caller that it runs for (core/lane.py). '' is a step that a process of an older
-- release made: any worker may claim it. Collated "C", so that all lanes of one handler lie next to each other.
ALTER TABLE windlass.steps ADD COLUMN lane text COLLATE "C" NOT NULL DEFAULT '';

-- The steps that are still to run. A job is open while it has a due time.
SET LOCAL enable_hashjoin = on;
WITH handler AS MATERIALIZED (
    SELECT p.hash, (step.place - 1)::int AS node, step.body ->> 'run' AS run
    FROM windlass.plans p CROSS JOIN LATERAL json_array_elements(p.body -> 'steps') WITH ORDINALITY AS step (body, place)
    WHERE p.hash IN (SELECT DISTINCT j.plan FROM windlass.jobs j WHERE j.due_at IS NOT NULL)
      AND coalesce(step.body ->> 'kind', 'task') = 'task'
)
UPDATE windlass.steps s
SET lane = handler.run || ' ' || j.caller
FROM windlass.jobs j JOIN handler ON handler.hash = j.plan
WHERE j.due_at IS NOT NULL AND s.job_id = j.id AND s.node = handler.node
  AND s.state IN ('BLOCKED', 'READY', 'HELD', 'QUEUED', 'RUNNING', 'PARKED');
SET LOCAL enable_hashjoin = off;

DROP INDEX windlass.steps_queued;
CREATE INDEX steps_queued ON windlass.steps (queue, lane, priority DESC, job_id, no) WHERE state = 'QUEUED';

-- What each worker can run, and for how long each of its leases lasts. A table of its own: processes of older releases
-- read every column of windlass.workers. A row outlives its worker, so that `why` can name the last one that had a handler.
CREATE TABLE windlass.capabilities (
    worker    uuid PRIMARY KEY,
    host      text NOT NULL,
    handlers  text[] COLLATE "C" NOT NULL,
    lease_s   real NOT NULL,
    since     timestamptz NOT NULL,
    until     timestamptz                        -- when the worker left; NULL while its lease runs, and after a loss
);

-- When an engine last looked for lapsed leases, and when the last long gap between two looks ended (core/lease.py).
ALTER TABLE windlass.installation
    ADD COLUMN looked_at timestamptz NOT NULL DEFAULT windlass.clock(),
    ADD COLUMN back_at timestamptz;
