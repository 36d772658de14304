-- name: note_add
INSERT INTO windlass_notes.notes (caller, text) VALUES ($1, $2) RETURNING id, text

-- name: note_all
SELECT id, text FROM windlass_notes.notes WHERE caller = $1 ORDER BY id

-- name: note_one
SELECT id, text FROM windlass_notes.notes WHERE id = $1 FOR UPDATE

-- name: note_change
UPDATE windlass_notes.notes SET text = $2 WHERE id = $1
