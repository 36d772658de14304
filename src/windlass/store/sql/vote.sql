-- Votes on approvals. The caller of every statement that writes holds the lock of the job's row.

-- name: vote_put
-- A person may change a vote while the approval is open.
INSERT INTO windlass.votes (approval_id, caller, choice, reason, note, key_id, at)
VALUES ($1, $2, $3, $4, $5, $6, windlass.clock())
ON CONFLICT (approval_id, caller) DO UPDATE
SET choice = excluded.choice, reason = excluded.reason, note = excluded.note, key_id = excluded.key_id, at = excluded.at

-- name: vote_list
SELECT approval_id, caller, choice, reason, note, at FROM windlass.votes WHERE approval_id = ANY ($1::uuid[])
ORDER BY approval_id, at, caller
