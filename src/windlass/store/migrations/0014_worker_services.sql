-- How the services of a worker's process are, as its heartbeat told last: a name and `ok`, or what is wrong. NULL: it
-- told nothing yet, or is of an older release. Without an index, so a renewal stays an update within its page.
ALTER TABLE windlass.workers ADD COLUMN services jsonb;
