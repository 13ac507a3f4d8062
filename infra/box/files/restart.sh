#!/bin/sh
# Restart one cluster, and prove by a real connection that it is back: Debian's unit says success even
# if Postgres died. If it does not come up, the file from before goes back, and it is started with that.
# Given: VERSION, NAME, OWNER, DATA, FOLDER, UNIT, CONF and LOG. Runs behind common.sh.
old="/var/lib/jobwarden/$VERSION-$NAME.conf.old"
talk=$(mktemp)
trap 'rm -f "$talk"' EXIT

runuser -u "$OWNER" -- "/usr/lib/postgresql/$VERSION/bin/postgres" -D "$DATA" \
  -c "config_file=$FOLDER/postgresql.conf" -C shared_preload_libraries >/dev/null 2>"$talk" ||
  fail "the configuration is not valid, so nothing was restarted: $(tail -n 3 "$talk")" "mend it, then deploy again"

answers() {
  tries=0
  while [ "$tries" -lt "$1" ]; do
    if [ -s "$DATA/postmaster.pid" ] && [ "$(echo 'SELECT 1' | ask postgres 2>/dev/null)" = 1 ]; then return 0; fi
    if [ "$tries" -gt 20 ] && ! systemctl is-active --quiet "$UNIT"; then return 1; fi
    tries=$((tries + 1))
    sleep 0.25
  done
  return 1
}

lines_before=$(wc -l <"$LOG" 2>/dev/null || echo 0)
systemctl reset-failed "$UNIT" 2>/dev/null
systemctl restart "$UNIT"
if answers 240; then
  rm -f "$old"
  exit 0
fi
said=$(tail -n "+$((lines_before + 1))" "$LOG" 2>/dev/null | grep -E 'FATAL|ERROR|DETAIL|HINT' | tail -n 4)
if [ ! -e "$old" ]; then
  fail "$VERSION/$NAME did not come up: $said" "read $LOG on the box"
fi
if [ -s "$old" ]; then cp -p "$old" "$CONF"; else rm -f "$CONF"; fi
systemctl reset-failed "$UNIT" 2>/dev/null
systemctl restart "$UNIT"
if answers 240; then
  rm -f "$old"
  fail "$VERSION/$NAME did not come up with the new $CONF; the old file is back and the server is up: $said" \
    "mend the setting that the log names, then deploy again"
fi
fail "$VERSION/$NAME does not come up, with the old file either: $said" "read $LOG on the box"
