#!/bin/sh
# Users, their logins in Postgres, unit files and variables of the services; then stop, restart and
# see that they stay up, or that what a timer starts succeeds.
# Given: NEW_USERS, WRITE with FILE_0..., ENVS with ENV_0..., REMOVE, REMOVE_ENVS, STOP, RESTART and
# TIMERS; ROLES, the SQL for the logins, TRY, the URLs by which each must get in, and LET_CONNECT, the
# SQL that lets them into the database. Runs behind common.sh.
for user in $NEW_USERS; do
  useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$user" ||
    fail "user $user could not be made" "name another user for the service"
done

if [ -n "$ROLES" ]; then
  said=$(printf '%s' "$ROLES" | ask postgres 2>&1) ||
    fail "the logins of the services could not be made; psql said: $said" "deploy again; the server's log says more"
fi
for url in $TRY; do
  user=${url#postgresql://}
  user=${user%%@*}
  if ! said=$(runuser -u "$user" -- "/usr/lib/postgresql/$VERSION/bin/psql" -XAtqw -d "$url" -c 'SELECT 1' 2>&1); then
    hint="mend what psql says; then deploy again"
    case $said in
      *"eer authentication failed"* | *"pg_hba.conf"* | *"no password supplied"*)
        hint="keep a line \"local all all peer\" in pg_hba.conf, before others that fit; then deploy again"
        ;;
      *"permission denied for database"*) hint="$LET_CONNECT; then deploy again" ;;
    esac
    fail "user $user does not get into Postgres as role $user; psql said: $said" "$hint"
  fi
done

# Where this ends early, by a full disk or a kill, files are new and what runs is not: the next deploy
# then finds here what is to be restarted.
due=/etc/jobwarden/due
if [ -n "$RESTART$TIMERS" ]; then
  mkdir -p /etc/jobwarden
  printf '%s\n' "$RESTART $TIMERS" | put "$due" root:root 644 || exit 1
fi

index=0 text=
for pair in $ENVS; do
  eval "text=\$ENV_$index"
  printf '%s' "$text" | put "/etc/jobwarden/${pair%:*}.env" "root:${pair#*:}" 640 || exit 1
  index=$((index + 1))
done

# shellcheck disable=SC2086 # a list of names
put_all FILE /etc/systemd/system $WRITE

# shellcheck disable=SC2086 # lists of units
if [ -n "$STOP" ]; then systemctl disable --now --quiet $STOP; fi
for name in $REMOVE; do rm -f "/etc/systemd/system/$name"; done
for name in $REMOVE_ENVS; do rm -f "/etc/jobwarden/$name.env"; done
systemctl daemon-reload
# shellcheck disable=SC2086 # lists of units
if [ -n "$STOP" ]; then systemctl reset-failed $STOP 2>/dev/null; fi

# The last words since now, without those of systemd that go with each start and each end.
began=$(date +%s)
words() {
  journalctl -u "$1" --since "@$began" -n 60 --no-pager -o cat |
    grep -v -e '^Start\(ed\|ing\) ' -e '^Stopp\(ed\|ing\) ' -e '^Failed to start ' -e ': Deactivated successfully' \
      -e ': Scheduled restart job' -e "Failed with result 'exit-code'" |
    awk '!said[$0]++' | tail -n 6
}
# All are started before any is judged: one that fails does not keep the others down.
if [ -n "$RESTART" ]; then
  # shellcheck disable=SC2086 # lists of units
  {
    systemctl enable --quiet $RESTART || fail "the units could not be enabled: $RESTART" "systemctl status $RESTART"
    systemctl reset-failed $RESTART 2>/dev/null
    systemctl restart $RESTART 2>/dev/null
  }
fi

# Both at once: a timer whose first time is past starts its service by itself, and that is then the
# same run. The timer is set to come up after a boot once a run has succeeded, so that the next deploy
# tries again after one that did not. A run that takes very long is left to itself.
broken=
for timer in $TIMERS; do
  service=${timer%.timer}.service
  systemctl disable --now --quiet "$timer"
  systemctl stop "$service"
  systemctl reset-failed "$timer" "$service" 2>/dev/null
  timeout 120 systemctl start "$timer" "$service" 2>/dev/null
  case $? in
    0 | 124) systemctl enable --quiet "$timer" || fail "$timer could not be enabled" "systemctl status $timer" ;;
    *) broken="$broken $service" ;;
  esac
done

rm -f "$due"

# A program that ends at once looks alive between two attempts: so its process must stay the same.
state() {
  systemctl show -p ActiveState -p MainPID "$1" | sort | tr '\n' ' '
}
if [ -n "$RESTART" ]; then
  sleep 0.5
  states=
  for unit in $RESTART; do states="$states$unit $(state "$unit")
"; done
  sleep 2.5
  printf '%s' "$states" | while read -r unit active pid; do
    if [ "$active" != ActiveState=active ] || [ "$(state "$unit")" != "$active $pid " ]; then
      fail "$unit does not stay up; it said: $(words "$unit")" \
        "mend the program or its variables, then deploy again; journalctl -u $unit says more"
    fi
  done || exit 1
fi
for unit in $broken; do
  fail "$unit does not succeed; it said: $(words "$unit")" \
    "mend the program or its variables, then deploy again; journalctl -u $unit says more"
done
