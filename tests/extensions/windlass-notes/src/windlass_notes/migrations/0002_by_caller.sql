CREATE INDEX notes_caller ON notes (caller, id);
