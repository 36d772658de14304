-- The oldest release that may run on this schema (store/migrate.py).
--
-- A release is compared by the number of its newest migration, not by its version. A migration that only adds leaves
-- these columns alone: older releases go on. A migration that an older release cannot run with raises both, e.g.
-- UPDATE windlass.installation SET oldest_schema = 24, oldest_release = '0.4.0'.
ALTER TABLE windlass.installation
    ADD COLUMN oldest_schema   int NOT NULL DEFAULT 0,
    ADD COLUMN oldest_release  text,
    ADD CHECK (oldest_schema = 0 OR oldest_release IS NOT NULL);
