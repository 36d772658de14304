-- What the service last knew of each caller, for the records of the audit: jobs name their caller only.
CREATE TABLE windlass.callers (
    caller       text PRIMARY KEY,
    caller_type  text NOT NULL,
    tier         text,
    known_at     timestamptz NOT NULL
);

-- Ids of ours whose callers Membership has named since: their jobs go to that name.
CREATE INDEX caller_aliases_adopted ON windlass.caller_aliases (caller) WHERE adopted_by IS NOT NULL;
