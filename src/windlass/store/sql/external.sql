-- The work of providers (provider_jobs), and the webhooks that providers sent about it (provider_events).
--
-- A transaction holds the lock of the job's row when it changes the state of a provider job. Two changes are exempt:
-- the insert, and the end of a cancel. Pollers hold no job lock, and never wait for a row.
--
-- Plans are made while the tables are small, and kept. `|| ''` after a column keeps the planner from an index that
-- would later read all open rows, or all rows of a provider. Rows are looked up one by one in a LATERAL part.

-- name: work_intend
-- Returns the current round of this step, or starts the next round. Returns nothing if the attempt no longer runs. The
-- lock on the step's row is enough: the transaction that ends the attempt writes that row before it looks for provider
-- jobs. The job's row stays free for claims and settles of the job's other steps.
WITH step AS MATERIALIZED (
    SELECT no FROM windlass.steps
    WHERE job_id = $1::uuid AND no = $2::int AND attempt = $3::int AND state || '' = 'RUNNING'
      AND ($6::uuid IS NULL OR worker = $6)
    FOR UPDATE
), taken AS (
    UPDATE windlass.provider_jobs SET attempt = $3
    WHERE job_id = $1 AND no = $2 AND provider || '' = $4::text AND state || '' IN ('SUBMITTING', 'RUNNING')
      AND EXISTS (SELECT FROM step)
    RETURNING round, external_id, state
), added AS (
    INSERT INTO windlass.provider_jobs (job_id, no, round, attempt, provider, state, poll_s, created_at)
    SELECT $1, $2,
           1 + coalesce((SELECT max(round) FROM windlass.provider_jobs WHERE job_id = $1 AND no = $2), 0),
           $3, $4, 'SUBMITTING', $5::float8, windlass.clock()
    WHERE EXISTS (SELECT FROM step) AND NOT EXISTS (SELECT FROM taken)
    ON CONFLICT DO NOTHING
    RETURNING round, external_id, state
)
SELECT *, false AS is_new FROM taken
UNION ALL
SELECT *, true FROM added
UNION ALL
-- work_orphaned has just taken that round number, so the caller must try again.
SELECT NULL, NULL, NULL, NULL FROM step WHERE NOT EXISTS (SELECT FROM taken) AND NOT EXISTS (SELECT FROM added)

-- name: work_rejected
-- Only while the provider's acceptance is unknown, and no later attempt has taken the round over.
UPDATE windlass.provider_jobs
SET state = 'ENDED', status = $4, due_at = NULL, ended_at = windlass.clock()
WHERE job_id = $1 AND no = $2 AND round = $3 AND state || '' = 'SUBMITTING' AND external_id IS NULL
  AND attempt = coalesce($5::int, attempt)

-- name: work_orphaned
-- Handles work that was started for an attempt that is over. If the work is known already, there is nothing to do. If
-- another attempt has taken the round over, the round gets the id and that attempt waits for it. Otherwise the work is
-- cancelled.
WITH known AS (
    SELECT FROM windlass.provider_jobs
    WHERE provider = $4::text AND external_id = $5::text AND job_id = $1::uuid AND no = $2::int
), learned AS (
    UPDATE windlass.provider_jobs w
    SET external_id = $5, submitted_at = windlass.clock(), ended_at = NULL, polls = 0,
        state = CASE WHEN w.state = 'SUBMITTING' THEN 'RUNNING' ELSE 'CANCELLING' END,
        due_at = windlass.clock() + CASE WHEN w.state = 'SUBMITTING' THEN make_interval(secs => w.poll_s)
                                         ELSE interval '0' END
    WHERE w.job_id = $1 AND w.no = $2 AND w.round = $3::int AND w.external_id IS NULL AND NOT EXISTS (SELECT FROM known)
    RETURNING w.state
), added AS (
    INSERT INTO windlass.provider_jobs
        (job_id, no, round, attempt, provider, external_id, state, due_at, created_at, submitted_at)
    SELECT $1, $2,
           1 + coalesce((SELECT max(round) FROM windlass.provider_jobs WHERE job_id = $1 AND no = $2), 0),
           0, $4, $5, 'CANCELLING', t.now, t.now, t.now
    FROM (SELECT windlass.clock() AS now) AS t
    WHERE NOT EXISTS (SELECT FROM known) AND NOT EXISTS (SELECT FROM learned)
    RETURNING state
)
SELECT true
FROM (SELECT state FROM learned UNION ALL SELECT state FROM added) AS n WHERE state = 'CANCELLING'

-- name: work_moved
-- Updates open work when its step moves. Running work is cancelled; $3 is the new state of work whose acceptance is
-- unknown. Work in state CANCELLING stays so. The count of polls starts again, because it now counts cancel requests.
WITH moved AS (
    UPDATE windlass.provider_jobs w
    SET state = CASE WHEN w.state = 'RUNNING' THEN 'CANCELLING' ELSE d.state END,
        polls = 0,
        due_at = CASE WHEN w.state = 'RUNNING' OR d.state = 'CANCELLING' THEN windlass.clock() END,
        ended_at = CASE WHEN w.state <> 'RUNNING' AND d.state = 'ENDED' THEN windlass.clock() END
    FROM unnest($1::uuid[], $2::int[], $3::text[]) AS d (job_id, no, state)
    WHERE w.job_id = d.job_id AND w.no = d.no
      AND (w.state = 'RUNNING' OR (w.state = 'SUBMITTING' AND d.state <> 'SUBMITTING'))
    RETURNING w.state, w.provider, w.external_id
)
SELECT provider, external_id, state = 'CANCELLING' AS is_due FROM moved

-- name: work_swept
WITH moved AS (
    UPDATE windlass.provider_jobs SET state = 'CANCELLING', polls = 0, due_at = windlass.clock()
    WHERE job_id = ANY($1::uuid[]) AND state IN ('SUBMITTING', 'RUNNING')
    RETURNING provider, external_id
)
SELECT provider, external_id, true AS is_due FROM moved

-- name: work_recorded
-- Records the provider's ids for attempts that now wait for a provider. A step whose request was not recorded
-- beforehand gets its row here. If the round had another id (the provider ran one request twice), that other work is
-- cancelled. $6 are the locks of the ids: a transaction that stores an event with an unknown id holds its lock while it
-- checks.
WITH d AS MATERIALIZED (
    SELECT u.*, o.round AS open_round, o.external_id AS old_id, coalesce(m.round, 0) AS last_round,
           windlass.clock() AS now
    FROM unnest($1::uuid[], $2::int[], $3::int[], $4::text[], $5::text[])
        AS u (job_id, no, attempt, provider, external_id)
    LEFT JOIN LATERAL (
        SELECT w.round, w.external_id FROM windlass.provider_jobs w
        WHERE w.job_id = u.job_id AND w.no = u.no AND w.state IN ('SUBMITTING', 'RUNNING')
        ORDER BY w.round DESC LIMIT 1
    ) AS o ON true
    LEFT JOIN LATERAL (
        SELECT w.round FROM windlass.provider_jobs w WHERE w.job_id = u.job_id AND w.no = u.no
        ORDER BY w.round DESC LIMIT 1
    ) AS m ON true
), kept AS (
    UPDATE windlass.provider_jobs w
    SET state = 'RUNNING', external_id = d.external_id, attempt = d.attempt,
        submitted_at = coalesce(w.submitted_at, d.now), due_at = d.now + make_interval(secs => w.poll_s)
    FROM d
    WHERE w.job_id = d.job_id AND w.no = d.no AND w.round = d.open_round
    RETURNING w.poll_s
), added AS (
    INSERT INTO windlass.provider_jobs
        (job_id, no, round, attempt, provider, external_id, state, due_at, created_at, submitted_at)
    SELECT job_id, no, last_round + 1, attempt, provider, external_id, 'RUNNING', now + interval '30 seconds', now, now
    FROM d WHERE open_round IS NULL
    UNION ALL
    SELECT job_id, no, last_round + 1, 0, provider, old_id, 'CANCELLING', now, now, now
    FROM d WHERE old_id <> external_id
    RETURNING state
), locked AS (
    SELECT pg_advisory_xact_lock(k) FROM unnest($6::bigint[]) AS k
)
SELECT (SELECT count(*) FROM locked),
       -- The poller reads the table every few seconds; earlier work needs a bell.
       EXISTS (SELECT FROM added WHERE state = 'CANCELLING') OR EXISTS (SELECT FROM kept WHERE poll_s < 5) AS is_soon

-- name: event_known
-- Marks the events whose work is now known. Many other events may wait, so the rows are looked up one by one, for any
-- statistics of the table.
UPDATE windlass.provider_events SET state = 'DUE'
WHERE ctid = ANY (ARRAY(
    SELECT e.ctid
    FROM unnest($1::text[], $2::text[]) AS d (provider, external_id)
    CROSS JOIN LATERAL (
        SELECT ctid FROM windlass.provider_events
        WHERE provider = d.provider AND external_id = d.external_id AND state = 'WAITING'
        FOR UPDATE
    ) AS e
))
RETURNING true

-- name: work_find
-- The work that each answer may be about: by the provider's id, or by our key while that id is unknown.
SELECT d.place, w.job_id, w.no, w.round, at.node, at.plan
FROM unnest($1::text[], $2::text[], $3::uuid[], $4::int[], $5::int[]) WITH ORDINALITY
    AS d (provider, external_id, job_id, no, round, place)
CROSS JOIN LATERAL (
    (SELECT f.job_id, f.no, f.round FROM windlass.provider_jobs f
     WHERE f.provider = d.provider AND f.external_id = d.external_id AND f.state || '' <> 'ENDED' LIMIT $6)
    UNION ALL
    (SELECT f.job_id, f.no, f.round FROM windlass.provider_jobs f
     WHERE f.provider = d.provider AND f.external_id = d.external_id AND f.state || '' = 'ENDED' LIMIT 1)
    UNION ALL
    (SELECT f.job_id, f.no, f.round FROM windlass.provider_jobs f
     WHERE f.job_id = d.job_id AND f.no = d.no AND f.round = d.round AND f.provider = d.provider
       AND f.external_id IS NULL)
) AS w
CROSS JOIN LATERAL (
    SELECT s.node, j.plan FROM windlass.steps s JOIN windlass.jobs j ON j.id = s.job_id
    WHERE s.job_id = w.job_id AND s.no = w.no LIMIT 1
) AS at

-- name: work_read
-- Reads the rows again after their jobs were locked.
SELECT w.*
FROM unnest($1::uuid[], $2::int[], $3::int[]) AS d (job_id, no, round)
CROSS JOIN LATERAL (
    SELECT job_id, no, round, attempt, state, status, external_id, provider FROM windlass.provider_jobs
    WHERE job_id = d.job_id AND no = d.no AND round = d.round LIMIT 1
) AS w

-- name: work_answered
UPDATE windlass.provider_jobs w
SET state = d.state,
    status = coalesce(d.status, w.status),
    external_id = coalesce(w.external_id, d.external_id),
    submitted_at = coalesce(w.submitted_at, windlass.clock()),
    due_at = CASE d.state
        WHEN 'RUNNING' THEN coalesce(w.due_at, windlass.clock() + make_interval(secs => w.poll_s))
        -- Work with an id can be cancelled now.
        WHEN 'CANCELLING' THEN CASE WHEN w.external_id IS NULL AND d.external_id IS NOT NULL THEN windlass.clock()
                                    ELSE w.due_at END
        END,
    ended_at = CASE WHEN d.state = 'ENDED' THEN windlass.clock() END
FROM unnest($1::uuid[], $2::int[], $3::int[], $4::text[], $5::text[], $6::text[])
    AS d (job_id, no, round, state, status, external_id)
WHERE w.job_id = d.job_id AND w.no = d.no AND w.round = d.round AND w.state <> 'ENDED'

-- name: work_known
-- Returns the known ids of this list. The caller holds their locks.
SELECT d.place
FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS d (provider, external_id, place)
CROSS JOIN LATERAL (
    SELECT FROM windlass.provider_jobs w WHERE w.provider = d.provider AND w.external_id = d.external_id LIMIT 1
) AS w

-- name: work_id_lock
SELECT pg_advisory_xact_lock(k) FROM unnest($1::bigint[]) AS k

-- name: event_seen
SELECT e.*
FROM unnest($1::text[], $2::text[]) AS d (provider, id)
CROSS JOIN LATERAL (
    SELECT provider, id, state FROM windlass.provider_events WHERE provider = d.provider AND id = d.id LIMIT 1
) AS e

-- name: event_put
WITH put AS (
    INSERT INTO windlass.provider_events
        (provider, id, at, external_id, state, headers, body, said, job_id, no, round)
    SELECT d.provider, d.id, windlass.clock(), d.external_id, d.state, d.headers, d.body, d.said, d.job_id, d.no, d.round
    FROM unnest(:provider::text[], :id::text[], :external_id::text[], :state::text[], :headers::json[], :body::bytea[],
                :said::json[], :job_id::uuid[],
                :no::int[], :round::int[])
        AS d (provider, id, external_id, state, headers, body, said, job_id, no, round)
    ON CONFLICT DO NOTHING
    RETURNING id
)
SELECT count(*) FROM put

-- name: event_moved
-- Moves stored events, but only events that still have their earlier state.
UPDATE windlass.provider_events e
SET state = d.state, job_id = coalesce(d.job_id, e.job_id), no = coalesce(d.no, e.no), round = coalesce(d.round, e.round)
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6::int[], $7::int[])
    AS d (provider, id, was, state, job_id, no, round)
WHERE e.provider = d.provider AND e.id = d.id AND e.state = d.was

-- name: event_due
SELECT provider, id, external_id, said, job_id, no, round
FROM windlass.provider_events WHERE state = 'DUE' ORDER BY at LIMIT $1

-- name: event_get
SELECT provider, id, at, external_id, state, headers, body, job_id, no, round
FROM windlass.provider_events WHERE provider = $1 AND id = $2

-- name: event_list
SELECT id, at, external_id, state, job_id FROM windlass.provider_events
WHERE provider || '' = $1 AND state || '' = coalesce($2::text, state)
ORDER BY at DESC LIMIT $3

-- name: event_forget
WITH gone AS (
    DELETE FROM windlass.provider_events WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM windlass.provider_events WHERE at < windlass.clock() - make_interval(secs => $1)
        ORDER BY at LIMIT $2 FOR UPDATE SKIP LOCKED
    ))
    RETURNING id
)
SELECT count(*) FROM gone

-- name: work_due
-- Takes due work, and postpones it for as long as a request to the provider may take.
WITH picked AS MATERIALIZED (
    SELECT job_id, no, round FROM windlass.provider_jobs
    WHERE provider = $1::text AND due_at <= windlass.clock()
    ORDER BY due_at LIMIT $2
    FOR UPDATE SKIP LOCKED
)
UPDATE windlass.provider_jobs w
SET due_at = (SELECT windlass.clock()) + make_interval(secs => $3::float8)
FROM picked p WHERE w.job_id = p.job_id AND w.no = p.no AND w.round = p.round
RETURNING w.job_id, w.no, w.round, w.attempt, w.provider, w.external_id, w.state, w.polls, w.status, w.created_at,
          (SELECT windlass.clock()) AS now, w.due_at

-- name: work_next_due
SELECT d.provider, extract(epoch FROM w.due_at - windlass.clock())::float8 AS wait_s
FROM unnest($1::text[]) AS d (provider)
CROSS JOIN LATERAL (
    SELECT due_at FROM windlass.provider_jobs WHERE provider = d.provider AND due_at IS NOT NULL ORDER BY due_at LIMIT 1
) AS w

-- name: work_polled
-- Writes only rows that did not change since they were taken. A locked row is being settled or cancelled. If it is not,
-- it becomes due again after the time for the request.
WITH picked AS MATERIALIZED (
    SELECT w.job_id, w.no, w.round, d.status, d.after_s, d.is_over, d.is_poll
    FROM unnest(:job_id::uuid[], :no::int[], :round::int[], :state::text[], :due_at::timestamptz[], :status::text[],
                :after_s::float8[], :is_over::bool[],
                :is_poll::bool[], :polls::int[])
        AS d (job_id, no, round, state, due_at, status, after_s, is_over, is_poll, polls)
    JOIN windlass.provider_jobs w ON w.job_id = d.job_id AND w.no = d.no AND w.round = d.round
    WHERE w.state || '' = d.state AND w.due_at IS NOT DISTINCT FROM d.due_at AND w.polls = d.polls
    FOR UPDATE OF w SKIP LOCKED
)
UPDATE windlass.provider_jobs w
SET status = coalesce(p.status, w.status),
    polls = w.polls + p.is_poll::int,
    state = CASE WHEN p.is_over THEN 'ENDED' ELSE w.state END,
    ended_at = CASE WHEN p.is_over THEN windlass.clock() END,
    due_at = CASE WHEN NOT p.is_over THEN windlass.clock() + make_interval(secs => p.after_s) END
FROM picked p WHERE w.job_id = p.job_id AND w.no = p.no AND w.round = p.round

-- name: work_of
SELECT job_id, no, round, attempt, provider, external_id, state, status, polls, due_at, created_at, submitted_at, ended_at
FROM windlass.provider_jobs WHERE job_id = $1 ORDER BY no, round

-- name: work_forgotten
-- The oldest unfinished work.
SELECT job_id, no, round, attempt, provider, external_id, state, status, polls, due_at, created_at, submitted_at, ended_at
FROM windlass.provider_jobs
WHERE provider = $1 AND state <> 'ENDED' AND created_at < windlass.clock() - make_interval(secs => $2::float8)
ORDER BY created_at LIMIT $3

-- name: work_hasten
-- A webhook reported that the work has ended, but not how, so the poller must poll now. A poll already in progress is
-- overtaken; settle applies only one of the two answers. `|| ''` and `coalesce` keep the index on the external id in
-- use, even for a plan that was made while the table was empty.
UPDATE windlass.provider_jobs SET due_at = windlass.clock()
WHERE provider = $1 AND external_id = $2 AND state || '' = 'RUNNING'
  AND coalesce(due_at, 'infinity') > windlass.clock()
RETURNING true
