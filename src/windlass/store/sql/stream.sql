-- What streams need to know beside the events.

-- name: stream_nodes
-- Which nodes the children of fan-outs belong to.
SELECT no, node FROM windlass.steps WHERE job_id = $1 AND no = ANY ($2::int[])
