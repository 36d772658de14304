-- Unqualified, so in the schema of the extension.
CREATE TABLE notes (
    id      int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    caller  text NOT NULL,
    text    text NOT NULL,
    at      timestamptz NOT NULL DEFAULT windlass.clock()
);
