-- Whether `expires_at` is the recipe's default. A default moves with the waits of the job; a time to live that a caller or
-- a recipe chose stands. Releases before this one write nothing here: then the time stands.
ALTER TABLE windlass.jobs ADD COLUMN is_ttl_default boolean NOT NULL DEFAULT false;
