-- Holds: why a step that is HELD may not be claimed yet, as a set (core/hold.py). 1: the job is paused, 2: it stands in
-- line for a slot. `waiting_for` keeps their names for people.
ALTER TABLE windlass.steps ADD COLUMN holds smallint NOT NULL DEFAULT 0;

-- A held step gives its place back, so a step with a slot's row stands in line again after its job is resumed.
UPDATE windlass.steps s
SET holds = CASE WHEN s.waiting_for = 'slot' THEN 2 ELSE 0 END
          + CASE WHEN s.waiting_for IS DISTINCT FROM 'slot' OR j.is_paused THEN 1 ELSE 0 END
          + CASE WHEN s.waiting_for IS DISTINCT FROM 'slot' AND EXISTS (
                SELECT FROM windlass.slots l WHERE l.job_id = s.job_id AND l.no = s.no
            ) THEN 2 ELSE 0 END
FROM windlass.jobs j
WHERE j.id = s.job_id AND s.state = 'HELD';
UPDATE windlass.steps
SET waiting_for = CASE holds WHEN 1 THEN 'paused' WHEN 2 THEN 'slot' ELSE 'paused,slot' END
WHERE state = 'HELD';

-- The rule itself: QUEUED means that no hold is left, HELD that there is one. Not checked for old rows: terminal steps are
-- many, and none has a hold.
ALTER TABLE windlass.steps ADD CONSTRAINT steps_held CHECK ((state = 'HELD') = (holds <> 0)) NOT VALID;

-- An older release would write HELD without holds.
UPDATE windlass.installation SET oldest_schema = 12, oldest_release = '0.2.0';
