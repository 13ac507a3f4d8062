#!/bin/sh
# Users, unit files and variables of the services; then stop, restart and see that they stay up.
# Given: NEW_USERS, WRITE with FILE_0..., ENVS with ENV_0..., REMOVE, REMOVE_ENVS, STOP and RESTART.
# Runs behind common.sh.
for user in $NEW_USERS; do
  useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$user" ||
    fail "user $user could not be made" "name another user for the service"
done

index=0 text=
[ -z "$ENVS" ] || mkdir -p /etc/jobwarden
for pair in $ENVS; do
  eval "text=\$ENV_$index"
  printf '%s' "$text" | put "/etc/jobwarden/${pair%:*}.env" "root:${pair#*:}" 640 || exit 1
  index=$((index + 1))
done

index=0
for name in $WRITE; do
  eval "text=\$FILE_$index"
  printf '%s' "$text" | put "/etc/systemd/system/$name" root:root 644 || exit 1
  index=$((index + 1))
done

# shellcheck disable=SC2086 # lists of units
if [ -n "$STOP" ]; then systemctl disable --now --quiet $STOP; fi
for name in $REMOVE; do rm -f "/etc/systemd/system/$name"; done
for name in $REMOVE_ENVS; do rm -f "/etc/jobwarden/$name.env"; done
[ -z "$WRITE$REMOVE" ] || systemctl daemon-reload
# shellcheck disable=SC2086 # lists of units
if [ -n "$STOP" ]; then systemctl reset-failed $STOP 2>/dev/null; fi
[ -n "$RESTART" ] || exit 0

# shellcheck disable=SC2086 # lists of units
{
  systemctl enable --quiet $RESTART || fail "the units could not be enabled: $RESTART" "systemctl status $RESTART"
  systemctl reset-failed $RESTART 2>/dev/null
  systemctl restart $RESTART 2>/dev/null
}

# A program that ends at once looks alive between two attempts: so its process must stay the same.
state() {
  systemctl show -p ActiveState -p MainPID "$1" | sort | tr '\n' ' '
}
sleep 0.5
states=
for unit in $RESTART; do states="$states$unit $(state "$unit")
"; done
sleep 2.5
printf '%s' "$states" | while read -r unit active pid; do
  if [ "$active" != ActiveState=active ] || [ "$(state "$unit")" != "$active $pid " ]; then
    fail "$unit does not stay up; it said: $(journalctl -u "$unit" -n 6 --no-pager -o cat)" \
      "mend the program or its variables, then deploy again; journalctl -u $unit says more"
  fi
done || exit 1
