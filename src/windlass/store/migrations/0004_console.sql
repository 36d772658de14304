-- The console: who is signed in at a browser, and the links that sign somebody in. Only digests of what they hold.

CREATE TABLE windlass.console_sessions (
    digest      bytea PRIMARY KEY,               -- of the cookie
    caller      text NOT NULL,
    key_id      text,                            -- of the built-in key that it is good for, and ends with
    sealed      bytea,                           -- else the key of another service, which only the cookie opens
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,            -- put off while it is used
    CHECK ((key_id IS NULL) <> (sealed IS NULL))
);
CREATE INDEX console_sessions_caller ON windlass.console_sessions (caller, expires_at);

-- One-use links. Whoever was given one before a crash of the server asks for another.
CREATE UNLOGGED TABLE windlass.console_tokens (
    digest      bytea PRIMARY KEY,
    key_id      text NOT NULL,
    expires_at  timestamptz NOT NULL
);
