-- What was done, by whom: notes as they come, and the chain that they become.

-- name: audit_note
INSERT INTO windlass.audit_notes (at, event, caller, payload) VALUES (windlass.clock(), $1, $2, $3)
