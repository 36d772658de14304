-- Handlers: the handlers that queued steps need, and the workers that have them (views/handlers.py).

-- name: handler_queued
-- The handlers that queued steps need, by queue, at most $1, each with one waiting job. The walk jumps in the index
-- from one handler to the next, for any number of waiting steps.
WITH RECURSIVE head AS (
    (SELECT queue, lane, job_id FROM windlass.steps WHERE state = 'QUEUED' ORDER BY queue, lane, priority DESC LIMIT 1)
    UNION ALL
    SELECT next.queue, next.lane, next.job_id
    FROM head CROSS JOIN LATERAL (
        (SELECT s.queue, s.lane, s.job_id FROM windlass.steps s
         WHERE s.state = 'QUEUED' AND s.queue = head.queue AND s.lane > split_part(head.lane, ' ', 1) || '!'
         ORDER BY s.queue, s.lane, s.priority DESC LIMIT 1)
        UNION ALL
        (SELECT s.queue, s.lane, s.job_id FROM windlass.steps s
         WHERE s.state = 'QUEUED' AND s.queue > head.queue
         ORDER BY s.queue, s.lane, s.priority DESC LIMIT 1)
        LIMIT 1
    ) AS next
)
SELECT queue, split_part(lane, ' ', 1) AS handler, job_id FROM head WHERE lane <> '' LIMIT $1

-- name: handler_missing
-- The handlers of this list, each in its queue, that no live worker of the queue has, with the last worker that had
-- each. A worker without a list belongs to an older release and may have any handler.
SELECT d.queue, d.handler, last.worker, last.host, last.until
FROM unnest($1::text[], $2::text[]) AS d (queue, handler)
LEFT JOIN LATERAL (
    SELECT c.worker, c.host, coalesce(c.until, w.lost_at, w.lease_until, c.since) AS until
    FROM windlass.capabilities c LEFT JOIN windlass.workers w ON w.id = c.worker
    WHERE d.handler = ANY (c.handlers)
    ORDER BY 3 DESC, c.worker LIMIT 1
) AS last ON true
WHERE NOT EXISTS (
    SELECT FROM windlass.workers w LEFT JOIN windlass.capabilities c ON c.worker = w.id
    WHERE w.lost_at IS NULL AND w.lease_until > windlass.clock() AND d.queue = ANY (w.queues)
      AND (coalesce(cardinality(c.handlers), 0) = 0 OR d.handler = ANY (c.handlers))
)
