#!/bin/sh
# The timers that do the work where no pg_cron does. Given: WRITE with FILE_0..., STATEMENTS with
# STATEMENT_0..., TIMERS, REMOVE, SCRIPT and SCRIPT_FILE. Runs behind common.sh.
folder=${SCRIPT_FILE%/*}
if [ -n "$SCRIPT" ]; then
  mkdir -p "$folder"
  printf '%s' "$SCRIPT" | put "$SCRIPT_FILE" root:root 755 || exit 1
fi
# shellcheck disable=SC2086 # lists of names
{
  put_all STATEMENT "$folder" $STATEMENTS
  put_all FILE /etc/systemd/system $WRITE
}
for name in $REMOVE; do
  case $name in *.timer) systemctl disable --now --quiet "$name" ;; esac
done
for name in $REMOVE; do
  systemctl reset-failed "$name" 2>/dev/null
  rm -f "/etc/systemd/system/$name"
done
systemctl daemon-reload
# shellcheck disable=SC2086 # a list of timers
if [ -n "$TIMERS" ]; then
  if ! { systemctl enable --quiet $TIMERS && systemctl restart $TIMERS; }; then
    fail "the timers could not be started: $TIMERS" "systemctl status $TIMERS"
  fi
fi
if [ -z "$SCRIPT" ]; then rm -rf "$folder"; fi
