-- The webhook scheduler was called herald, and a follower's position in the feed is stored under its name. The old row
-- stays: processes of the release before use it until they are upgraded. Two positions do no harm, because a webhook
-- becomes due only once.
INSERT INTO windlass.cursors (name, txid, job_id, seq)
SELECT 'webhook_scheduler', txid, job_id, seq FROM windlass.cursors WHERE name = 'herald'
ON CONFLICT DO NOTHING;
