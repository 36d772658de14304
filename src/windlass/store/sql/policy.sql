-- Published policies (engine/policies.py, engine/publish.py).

-- name: policy_now
SELECT no, floor FROM windlass.policy_now

-- name: policy_lock
-- The publisher's side of the fence: waits for every commit that judges (windlass.policy_check, windlass.policy_floor).
-- Later ones wait for this transaction. Once it has the lock, no claim by an older floor is under way.
SELECT pg_advisory_xact_lock(6015006)

-- name: policy_put
INSERT INTO windlass.policies (no, hash, documents, by, note, signature, rollback_of, at)
VALUES (:no, :hash, :documents, :by, :note, :signature, :rollback_of, windlass.clock())
RETURNING at

-- name: policy_put_now
-- $2: the verdicts about earlier jobs hold too.
UPDATE windlass.policy_now SET no = $1, floor = CASE WHEN $2 THEN floor ELSE $1 END RETURNING floor

-- name: policy_read
-- The version $1; NULL reads the version in force.
SELECT p.no, p.hash, p.documents, p.by, p.note, p.signature, p.rollback_of, p.at
FROM windlass.policies p
WHERE p.no = coalesce($1, (SELECT no FROM windlass.policy_now))

-- name: policy_list
-- The newest first, before the version $1; without the texts, which may be long.
SELECT p.no, p.hash, p.by, p.note, p.signature, p.rollback_of, p.at,
       ARRAY(SELECT d ->> 'name' FROM json_array_elements(p.documents) AS d) AS names
FROM windlass.policies p
WHERE p.no < $1
ORDER BY p.no DESC LIMIT $2

-- name: policy_past_jobs
-- The newest jobs of the last $1 seconds, at most $2, with what their policy was asked and what it decided at the submit.
-- The id of a job begins with its time, so the primary key finds them. A job that was allowed has no verdict's row.
SELECT j.id, j.recipe, j.created_at, j.caller, j.priority, j.depth, j.labels, j.input, j.policy, j.rule,
       e.payload -> 'caller' AS asker, v.decision, v.rule AS decided_by,
       (SELECT json_build_object('caller_type', c.caller_type, 'tier', c.tier)
        FROM windlass.callers c WHERE c.caller = j.caller) AS known
FROM windlass.jobs j
LEFT JOIN windlass.events e ON e.job_id = j.id AND e.seq = 1
LEFT JOIN LATERAL (
    SELECT decision, rule FROM windlass.verdicts
    WHERE job_id = j.id AND edge = 'submit' AND no IS NULL ORDER BY seq LIMIT 1
) AS v ON true
WHERE j.id >= rpad(lpad(to_hex(((extract(epoch FROM windlass.clock())::float8 - $1::float8) * 1000)::bigint), 12, '0'),
                   32, '0')::uuid
ORDER BY j.id DESC LIMIT $2

-- name: policy_past_gone
-- How many of the newest $2 jobs of the last $1 seconds have no row any more, as far as the audit remembers them.
SELECT count(*) FROM (
    SELECT a.job_id FROM windlass.audit a
    WHERE a.event = 'job_submitted' AND a.at >= windlass.clock() - make_interval(secs => $1)
    ORDER BY a.event DESC, a.no DESC LIMIT $2
) AS told
WHERE NOT EXISTS (SELECT FROM windlass.jobs j WHERE j.id = told.job_id)

-- name: policy_shadow_put
-- What shadow rules would have decided: counts by minute, and a few examples of each rule.
WITH counted AS (
    INSERT INTO windlass.policy_shadows AS s (minute, policy, rule, decision, count)
    SELECT date_trunc('minute', windlass.clock()), d.*
    FROM unnest(:counted_policies::bigint[], :counted_rules::text[], :counted_decisions::text[], :counts::int[]) AS d
    ON CONFLICT (minute, policy, rule, decision) DO UPDATE SET count = s.count + excluded.count
)
INSERT INTO windlass.policy_examples (at, policy, rule, decision, reason, edge, topic, tenant, job_id, caller)
SELECT windlass.clock(), d.*
FROM unnest(:policies::bigint[], :rules::text[], :decisions::text[], :reasons::text[], :edges::text[], :topics::text[],
            :tenants::text[], :jobs::text[], :callers::text[]) AS d

-- name: policy_shadow_trim
-- Keeps the newest $1 examples, and the counts of the last $2 seconds.
WITH counts AS (
    DELETE FROM windlass.policy_shadows WHERE minute < windlass.clock() - make_interval(secs => $2)
)
DELETE FROM windlass.policy_examples WHERE no <= (
    SELECT no FROM windlass.policy_examples ORDER BY no DESC OFFSET $1 LIMIT 1
)

-- name: policy_shadow_counts
-- The counts of the last $1 seconds by minute, the newest first.
SELECT minute, policy, rule, decision, count FROM windlass.policy_shadows
WHERE minute >= windlass.clock() - make_interval(secs => $1)
ORDER BY minute DESC, policy DESC, rule, decision LIMIT $2

-- name: policy_shadow_examples
SELECT at, policy, rule, decision, reason, edge, topic, tenant, job_id, caller FROM windlass.policy_examples
ORDER BY no DESC LIMIT $1

-- name: policy_enter
-- Takes the policy's lock before the locks of jobs, and refuses the transaction if another policy is in force.
SELECT windlass.policy_check($1)
