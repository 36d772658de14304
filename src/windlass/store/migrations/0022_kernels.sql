-- Kernels outside of the processes: one row for a kernel and a direction, which all processes share. It has the pace of
-- the questions and the breaker, as `providers` has them for providers.
CREATE TABLE windlass.kernels (
    name        text NOT NULL,
    direction   text NOT NULL CHECK (direction IN ('input', 'output')),
    free_at     timestamptz,
    failures    int NOT NULL DEFAULT 0,
    opened_at   timestamptz,
    -- The law admits three probes in a round; no process can store a fourth.
    probes      int NOT NULL DEFAULT 0 CHECK (probes BETWEEN 0 AND 3),
    successes   int NOT NULL DEFAULT 0,
    round       bigint NOT NULL DEFAULT 0,
    error       text,
    updated_at  timestamptz NOT NULL,
    PRIMARY KEY (name, direction)
);

-- The kernel that is asked about every new job; NULL: none. A process that does not know its address holds new jobs too.
ALTER TABLE windlass.policy_now ADD COLUMN kernel text;

-- When the job was let through because its kernel was silent. It is asked about again at `gate_at`.
ALTER TABLE windlass.jobs ADD COLUMN bypassed_at timestamptz;
