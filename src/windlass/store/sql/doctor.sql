-- The server settings that `windlass doctor` checks. Any role may read all of them.

-- name: doctor_settings
SELECT current_setting('fsync') = 'on' AS fsync,
       current_setting('full_page_writes') = 'on' AS full_page_writes,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('synchronous_standby_names') AS synchronous_standby_names,
       -- An ordinary role sees that a standby exists, but not how far it has replayed.
       (SELECT count(*) FROM pg_stat_replication)::int AS standbys,
       pg_is_in_recovery() AS is_standby,
       pg_database_size(current_database()) AS bytes,
       extract(epoch FROM windlass.clock())::float8 AS now_s

-- name: doctor_timeline
SELECT timeline, epoch FROM windlass.installation
