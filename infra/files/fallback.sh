#!/bin/sh
# Does the work of the two schedules from outside, for a Postgres without pg_cron.
#
#   fallback.sh [SWEEP_SECONDS [CLEANUP_SECONDS]]
#
# Each round calls jobwarden.sweep(), then waits SWEEP_SECONDS (300 unless said, or
# JOBWARDEN_SWEEP_SECONDS). jobwarden.cleanup() runs in the first round and then every
# CLEANUP_SECONDS (86400 unless said, or JOBWARDEN_CLEANUP_SECONDS).
#
# The connection is libpq's own: PGSERVICE, PGHOST, PGUSER, PGDATABASE, PGPASSFILE and so on. There
# is no way to say a password here, since arguments can be read by every user of the machine.
#
# While pg_cron carries our schedules on that server it does nothing and exits 0: never both at once.
# This is asked before each call. A server that is away is tried again every few seconds.
# TERM, INT or HUP cancels a call in progress and exits 0. A wrong argument exits 64.
set -u

CARRIED='carried by pg_cron'
RETRY_SECONDS=5
child=
child_signal=

say() {
  printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*"
}

whole_seconds() {
  case $2 in
    '' | *[!0-9]* | ??????????*) ;;
    *) [ "$2" -gt 0 ] && return ;;
  esac
  printf '%s: not a time in seconds (got "%s"; allowed: 1 to 999999999)\n' "$1" "$2" >&2
  printf 'Try: fallback.sh 300 86400\n' >&2
  exit 64
}

# A shell answers a signal only between commands, or while it waits for one in the background.
in_background() {
  wait "$child"
  status=$?
  child=
  return "$status"
}

pause() {
  sleep "$1" &
  child=$!
  child_signal=TERM
  in_background
}

# The call stands alone, outside any transaction, because the procedures commit as they go.
call() {
  psql -X -w -q -A -t -v ON_ERROR_STOP=1 >"$talk" 2>&1 <<SQL &
SELECT jobwarden.scheduled() AS scheduled \\gset
\\if :scheduled
\\echo $CARRIED
\\quit
\\endif
CALL jobwarden.$1();
SQL
  child=$!
  child_signal=INT
  in_background
}

tell() {
  while IFS= read -r line; do
    [ -z "$line" ] || say "$1: $line"
  done <"$talk"
}

# Returns non-zero when the call has to be tried again.
work() {
  if ! call "$1"; then
    tell "$1 failed"
    return 1
  fi
  if grep -qxF "$CARRIED" "$talk"; then
    say "pg_cron runs our schedules on this server, so there is nothing to do here"
    exit 0
  fi
  tell "$1"
  say "$1 done"
}

# psql turns INT into a cancel request, so that nothing of ours runs on in the server. One that has
# only just started does not listen yet, so it is told again.
stop() {
  trap '' TERM INT HUP
  if [ -n "$child" ]; then
    tries=0
    while kill -s "$child_signal" "$child" 2>/dev/null && [ "$tries" -lt 10 ]; do
      sleep 0.1
      tries=$((tries + 1))
    done
    kill -s KILL "$child" 2>/dev/null
  fi
  say "stopped"
  exit 0
}

sweep_seconds=${1:-${JOBWARDEN_SWEEP_SECONDS:-300}}
cleanup_seconds=${2:-${JOBWARDEN_CLEANUP_SECONDS:-86400}}
whole_seconds SWEEP_SECONDS "$sweep_seconds"
whole_seconds CLEANUP_SECONDS "$cleanup_seconds"
if [ $# -gt 2 ]; then
  printf 'too many arguments (got %s; allowed: at most 2)\nTry: fallback.sh 300 86400\n' "$#" >&2
  exit 64
fi
if ! command -v psql >/dev/null; then
  printf 'psql is not on the PATH\nTry: install the PostgreSQL client\n' >&2
  exit 1
fi
retry_seconds=$RETRY_SECONDS
[ "$sweep_seconds" -ge "$retry_seconds" ] || retry_seconds=$sweep_seconds

export PGAPPNAME="${PGAPPNAME:-jobwarden-fallback}"
export PGCONNECT_TIMEOUT="${PGCONNECT_TIMEOUT:-10}"
talk=$(mktemp) || exit 1
trap 'rm -f "$talk"' EXIT
trap stop TERM INT HUP

say "sweep every $sweep_seconds s, cleanup every $cleanup_seconds s"
cleanup_due=0
while :; do
  next=$sweep_seconds
  work sweep || next=$retry_seconds
  # Elapsed time only: which rows are due is decided by the database's clock.
  now=$(date +%s)
  if [ "$now" -ge "$cleanup_due" ]; then
    if work cleanup; then
      cleanup_due=$((now + cleanup_seconds))
    else
      next=$retry_seconds
    fi
  fi
  pause "$next"
done
