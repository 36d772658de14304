-- The timeline of the server's log that the installation was last seen on. A promoted standby continues on another one.
ALTER TABLE windlass.installation ADD COLUMN timeline int;
