#!/bin/sh
# Packages, their source, and a cluster that runs. Given: PACKAGES, SOURCES, SOURCES_FILE, KEY_FILE,
# VERSION, NAME, MAKE_CLUSTER and APT_SECONDS. Runs behind common.sh.
export DEBIAN_FRONTEND=noninteractive
LANG=C.UTF-8
# shellcheck source=/dev/null
if [ -r /etc/default/locale ]; then . /etc/default/locale; fi
unset LC_ALL
export LANG

talk=$(mktemp) before=$(mktemp)
trap 'rm -f "$talk" "$before"' EXIT

apt_get() {
  apt-get -y -q -o DPkg::Lock::Timeout="$APT_SECONDS" -o Dpkg::Options::=--force-confold "$@" >"$talk" 2>&1
}

apt_failed() {
  if grep -qE 'Could not get lock|Unable to acquire' "$talk"; then
    fail "apt is at work already: $(grep -E 'Could not get lock|Unable to acquire' "$talk" | tail -n 1)" \
      "wait until it has finished, then deploy again"
  fi
  fail "apt-get $1 failed: $(grep -E '^(E|W):' "$talk" | tail -n 3)" "run it by hand on the box and read its answer"
}

update() {
  apt_get update || apt_failed update
}

install() {
  if ! apt_get install "$@"; then
    if grep -qE 'Unable to locate|no installation candidate|Failed to fetch|Unable to fetch' "$talk"; then
      update
      apt_get install "$@" || apt_failed install
    else
      apt_failed install
    fi
  fi
}

# Lists of a source that cannot be reached are only a warning for apt: it ends with 0.
source_read() {
  apt_get update && ! grep -q 'Failed to fetch .*apt\.postgresql\.org' "$talk"
}

# A source that apt cannot use would keep everybody's apt from working.
take_source_back() {
  if [ -s "$before" ]; then
    put "$SOURCES_FILE" root:root 644 <"$before"
  else
    rm -f "$SOURCES_FILE"
  fi
}

if [ -n "$SOURCES" ]; then
  install postgresql-common ca-certificates
  [ -s "$KEY_FILE" ] || fail \
    "$KEY_FILE is missing: this release's postgresql-common is older than 246, which brings it; nothing was added to apt" \
    "put the key of apt.postgresql.org there (https://www.postgresql.org/media/keys/ACCC4CF8.asc), or take out postgres.packages: pgdg"
  if [ -e "$SOURCES_FILE" ]; then cat "$SOURCES_FILE" >"$before"; fi
  printf '%s' "$SOURCES" | put "$SOURCES_FILE" root:root 644 || exit 1
  if ! source_read; then
    take_source_back
    if ! grep -qE 'Could not get lock|Unable to acquire' "$talk"; then
      fail "apt-get update failed with the new $SOURCES_FILE, which was taken back: $(grep -E '^(E|W):' "$talk" | tail -n 3)" \
        "see that the box reaches apt.postgresql.org and that no other file in /etc/apt names it with another key, then deploy again"
    fi
    apt_failed update
  fi
fi
# shellcheck disable=SC2086 # a list of packages
if [ -n "$PACKAGES" ]; then install $PACKAGES; fi

if [ -n "$MAKE_CLUSTER" ]; then
  if ! pg_lsclusters --no-header | awk -v v="$VERSION" -v n="$NAME" '$1 == v && $2 == n { found = 1 } END { exit !found }'; then
    pg_createcluster "$VERSION" "$NAME" >"$talk" 2>&1 ||
      fail "pg_createcluster $VERSION $NAME failed: $(tail -n 3 "$talk")" "run it by hand on the box"
  fi
  systemctl start "postgresql@$VERSION-$NAME.service"
  tries=0
  until pg_lsclusters --no-header | awk -v v="$VERSION" -v n="$NAME" '$1 == v && $2 == n && $4 ~ /^online/ { found = 1 } END { exit !found }'; do
    tries=$((tries + 1))
    [ "$tries" -lt 60 ] || fail "cluster $VERSION/$NAME did not start" "journalctl -u postgresql@$VERSION-$NAME"
    sleep 0.5
  done
fi
