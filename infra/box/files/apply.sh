#!/bin/sh
# Carry one script for psql, one apply at a time, and print what psql answered in base64.
# Given: VERSION, OWNER, DATA, DATABASE, SQL and BUSY. Runs behind common.sh.
talk=$(mktemp)
answer=$(mktemp)
trap 'rm -f "$talk" "$answer"' EXIT

tries=0
while :; do
  if ! printf '%s' "$SQL" | ask "$DATABASE" >"$answer" 2>"$talk"; then
    fail "$(grep -E 'ERROR|FATAL|DETAIL|error:|HINT' "$talk" | tail -n 4)" "mend what the server names, then deploy again; nothing is half done"
  fi
  grep -qxF "$BUSY" "$answer" || break
  tries=$((tries + 1))
  [ "$tries" -lt 60 ] || fail "another apply has been at work on database $DATABASE for a minute" "wait for it, or end it: SELECT pid FROM pg_locks WHERE locktype = 'advisory'; then deploy again"
  sleep 1
done
printf 'answer '
base64 -w 0 <"$answer"
echo
