-- Notes of running attempts.

-- name: note_step
-- The jobs' rows are locked, and the attempts were checked to be current.
UPDATE windlass.steps s
SET progress = coalesce(d.progress, s.progress), checkpoint = coalesce(d.checkpoint, s.checkpoint)
FROM unnest($1::uuid[], $2::int[], $3::json[], $4::json[]) AS d (job_id, no, progress, checkpoint)
WHERE s.job_id = d.job_id AND s.no = d.no

-- name: note_job
UPDATE windlass.jobs j SET progress = d.progress
FROM unnest($1::uuid[], $2::json[]) AS d (job_id, progress)
WHERE j.id = d.job_id
