-- Messages between jobs. The commit that causes a message writes it; the commit that applies it deletes it.

-- name: inbox_take
-- Messages in order of arrival. Only the commit that applies a message deletes it.
SELECT i.job_id, i.no, i.attempt, i.source, i.outcome FROM windlass.inbox i ORDER BY i.at, i.job_id, i.no LIMIT $1

-- name: inbox_cancel_children
-- Tells the child jobs of a swept job to cancel; $2 says whether they undo their effects.
INSERT INTO windlass.inbox (job_id, no, attempt, source, outcome, at)
SELECT id, -1, 0, 'parent', CASE WHEN $2 THEN '{}' ELSE '{"undo":false}' END::json, windlass.clock() FROM windlass.jobs WHERE parent_job = $1 AND finished_at IS NULL
ON CONFLICT DO NOTHING

-- name: inbox_drop
DELETE FROM windlass.inbox i
USING unnest($1::uuid[], $2::int[], $3::int[], $4::text[]) AS d (job_id, no, attempt, source)
WHERE i.job_id = d.job_id AND i.no = d.no AND i.attempt = d.attempt AND i.source = d.source
