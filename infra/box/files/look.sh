#!/bin/sh
# Everything a deploy must know about a box, in one round trip. Changes nothing.
#
# Prints one line per finding: a key and its value in base64, so that no odd character can break it.
# What is not there is left out. Given: WANT_VERSION, WANT_NAME and WANT_PORT (empty: any), DATABASE,
# CONF_NAME, UNITS, USERS, SERVER_SQL and OBSERVE_SQL. Runs behind common.sh.

emit() {
  printf '%s ' "$1"
  base64 -w 0
  echo
}
emit_file() {
  if [ -r "$2" ]; then emit "$1" <"$2"; fi
}

emit_file os /etc/os-release
dpkg-query -W -f '${db:Status-Abbrev}|${Package}|${Version}\n' 'postgresql*' 2>/dev/null | emit packages
emit_file sources /etc/apt/sources.list.d/jobwarden-pgdg.sources

clusters=
if command -v pg_lsclusters >/dev/null; then
  clusters=$(pg_lsclusters --no-header 2>/dev/null)
  printf '%s\n' "$clusters" | emit clusters
fi
chosen=$(printf '%s\n' "$clusters" | awk -v v="$WANT_VERSION" -v n="$WANT_NAME" -v p="$WANT_PORT" \
  'NF >= 6 && (v == "" || $1 == v) && (n == "" || $2 == n) && (p == "" || $3 == p)')
if [ "$(printf '%s\n' "$chosen" | grep -c .)" = 1 ]; then
  # shellcheck disable=SC2086 # its columns are the words wanted
  set -- $chosen
  version=$1 name=$2 owner=$5 data=$6
  folder=/etc/postgresql/$version/$name
  printf '%s/%s' "$version" "$name" | emit chosen
  emit_file conf "$folder/conf.d/$CONF_NAME"
  grep -n '^[[:space:]]*include_dir' "$folder/postgresql.conf" 2>/dev/null | emit includes
  find "/usr/lib/postgresql/$version/lib" -maxdepth 1 -name '*.so' -printf '%f\n' 2>/dev/null | emit libraries
  emit_file control "/usr/share/postgresql/$version/extension/pg_cron.control"
  emit_file proof "/var/lib/jobwarden/$version-$name.proof"
  # shellcheck disable=SC2034 # ask uses them
  VERSION=$version OWNER=$owner DATA=$data
  if [ -s "$DATA/postmaster.pid" ]; then
    talk=$(mktemp)
    printf '%s' "$SERVER_SQL" | ask postgres 2>"$talk" | emit server
    emit_file server_error "$talk"
    printf '%s' "$OBSERVE_SQL" | ask "$DATABASE" 2>"$talk" | emit observed
    emit_file observed_error "$talk"
    rm -f "$talk"
  fi
fi

if [ -d /run/systemd/system ]; then
  for unit in /etc/systemd/system/*.service /etc/systemd/system/*.timer; do
    if grep -qs '^# Jobwarden wrote this' "$unit"; then
      emit "unit:${unit##*/}" <"$unit"
      unit=${unit##*/}
      case $unit in
        *@.service) UNITS="$UNITS ${unit%.service}*.service" ;;
        *) UNITS="$UNITS $unit" ;;
      esac
    fi
  done
  # Also instances that were stopped by hand: they are set to come up after a boot.
  # shellcheck disable=SC2086 # a list of names and patterns
  systemctl show --all --no-pager -p Id,LoadState,ActiveState,SubState,UnitFileState,FragmentPath,Result,NRestarts \
    $UNITS 2>/dev/null | emit systemctl
fi
emit_file fallback /usr/local/lib/jobwarden/fallback-once.sh
for file in /etc/jobwarden/*.env; do
  if [ -f "$file" ]; then
    mark=foreign
    if grep -qs '^# Jobwarden wrote this' "$file"; then mark=ours; fi
    printf '%s %s %s' "$(stat -c '%a %U %G' "$file")" "$(sha256sum <"$file")" "$mark" | emit "env:${file##*/}"
  fi
done
emit_file due /etc/jobwarden/due
for user in $USERS; do
  if getent passwd "$user" >/dev/null; then printf '%s\n' "$user"; fi
done | emit users
printf 'done' | emit end
exit 0
