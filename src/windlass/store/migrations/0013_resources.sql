-- Resources: a step takes an amount of what it stands in line for, not always one; and each holding has a number.
ALTER TABLE windlass.slots
    ADD COLUMN places int NOT NULL DEFAULT 1,     -- how many of the provider's places the step takes
    ADD COLUMN takes int NOT NULL DEFAULT 1,      -- how many of the `most` that its key has
    ADD COLUMN fence bigint NOT NULL DEFAULT 0;   -- raised with every grant; 0: not granted yet

-- What is held now was granted once.
UPDATE windlass.slots SET fence = 1 WHERE state = 'HELD';

-- Amounts are summed where rows were counted, from the index alone.
DROP INDEX windlass.slots_provider;
CREATE INDEX slots_provider ON windlass.slots (provider) INCLUDE (places) WHERE state = 'HELD';
DROP INDEX windlass.slots_key;
CREATE INDEX slots_key ON windlass.slots (key) INCLUDE (takes, most) WHERE state = 'HELD' AND key <> '';

-- An older release would count steps where amounts are held, and grant too many.
UPDATE windlass.installation SET oldest_schema = 13, oldest_release = '0.2.0';
