-- A job whose step used up its time ends as TIMEOUT. Such jobs are dead letters and are found by the step that failed, as
-- FAILED ones are. A statement of an older release, which asks for FAILED alone, finds its rows by these indexes too.
CREATE INDEX jobs_failed ON windlass.jobs (id) WHERE trouble IN ('FAILED', 'TIMEOUT');
DROP INDEX windlass.jobs_failed_step;
CREATE INDEX jobs_failed_step ON windlass.jobs (caller, (error ->> 'step'), id) WHERE trouble IN ('FAILED', 'TIMEOUT');
