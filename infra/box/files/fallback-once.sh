#!/bin/sh
# Jobwarden wrote this. A deploy puts it back.
#
# Runs one schedule's SQL, for a Postgres without pg_cron. A systemd timer calls it:
#
#   fallback-once.sh FILE       FILE: the statement, in one file
#
# The connection is libpq's own (PGHOST, PGPORT, PGDATABASE; PSQL names the program). While pg_cron
# carries our schedules on that server it does nothing and exits 0: never both at once. Any failure
# exits non-zero, so that `systemctl --failed` shows it.
set -u

if [ $# -ne 1 ] || [ ! -r "$1" ]; then
  printf 'no statement to run (got "%s"; allowed: one file that can be read)\n' "$*" >&2
  printf 'Try: deploy again, which writes the files\n' >&2
  exit 64
fi
export PGAPPNAME=jobwarden-fallback PGCONNECT_TIMEOUT=10

# The statement stands alone, outside any transaction, because the procedures commit as they go.
exec "${PSQL:-psql}" -X -w -q -A -t -v ON_ERROR_STOP=1 -v statement="$1" <<'SQL'
SELECT jobwarden.scheduled() AS carried \gset
\if :carried
\echo pg_cron runs our schedules on this server, so there is nothing to do here
\quit
\endif
SET ROLE jobwarden_runner;
SET search_path = pg_catalog;
SET lock_timeout = '5s';
SET statement_timeout = '30min';
\i :statement
SQL
