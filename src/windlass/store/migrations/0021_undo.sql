-- Undo: the jobs that undo the effects of jobs which ended badly, and the attempts that may still act after such an end.
-- Tables of their own: a job without an undo has no row here, and its submit writes no further column or index.

-- One row for each undo job. The first undo of a job is part 0. A resumed undo, and the undo of a late success, are
-- further parts.
CREATE TABLE windlass.undos (
    job_id      uuid NOT NULL,
    part        int NOT NULL,
    undo_job    uuid NOT NULL,
    -- Its first steps are held until no attempt of the job can act any more.
    is_waiting  boolean NOT NULL,
    -- Its first steps are held until a person says go.
    is_asked    boolean NOT NULL,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (job_id, part)
);
CREATE UNIQUE INDEX undos_job ON windlass.undos (undo_job);
CREATE INDEX undos_waiting ON windlass.undos (job_id) WHERE is_waiting;

-- An attempt that was in progress when its job ended, of a step that can be undone.
--   WAITED  it may still act, and an undo job waits for it
--   OVER    it reported another end, or its worker or its time is gone; its undo step has not looked yet
--   PASSED  no undo step will look again: a success that arrives now gets an undo job of its own
--   DONE    it succeeded late; `output` has its output, and its effect is undone like any other
CREATE TABLE windlass.undo_attempts (
    job_id   uuid NOT NULL,
    no       int NOT NULL,
    attempt  int NOT NULL,
    worker   uuid,
    until    timestamptz,
    state    text NOT NULL,
    output   json,
    PRIMARY KEY (job_id, no)
);
CREATE INDEX undo_attempts_waited ON windlass.undo_attempts (until) WHERE state = 'WAITED';

-- The retry of a failed job keeps finished steps, and their effects belong to the new job from then on.
CREATE TABLE windlass.undo_moved (
    job_id   uuid PRIMARY KEY,
    new_job  uuid NOT NULL
);

-- Jobs that were cancelled without undo: their effects stand.
CREATE TABLE windlass.undo_kept (
    job_id  uuid PRIMARY KEY
);

-- An older release would run an undo step with no arguments, and keep the results of undone steps.
UPDATE windlass.installation SET oldest_schema = 21, oldest_release = '0.2.0';
