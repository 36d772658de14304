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

-- name: policy_enter
-- Takes the policy's lock before the locks of jobs, and refuses the transaction if another policy is in force.
SELECT windlass.policy_check($1)
