-- Whether the server can do its work (store/database.py).

-- name: database_is_read_only
SELECT current_setting('transaction_read_only') = 'on'

-- name: database_test_write
-- Makes a new file of half a megabyte and drops it with its commit. An update of a row would find room in a page that is
-- there already, and say nothing of the disk.
CREATE TEMPORARY TABLE windlass_test_write ON COMMIT DROP AS
SELECT repeat(md5(i::text), 60) AS filler FROM generate_series(1, 256) AS i
