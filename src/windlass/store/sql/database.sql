-- Checks whether the server can accept writes (store/database.py).

-- name: database_is_read_only
SELECT current_setting('transaction_read_only') = 'on'

-- name: database_test_write
-- Creates a new file of half a megabyte and drops it at commit. An update of a row would find room in an existing page,
-- and prove nothing about the disk.
CREATE TEMPORARY TABLE windlass_test_write ON COMMIT DROP AS
SELECT repeat(md5(i::text), 60) AS filler FROM generate_series(1, 256) AS i
