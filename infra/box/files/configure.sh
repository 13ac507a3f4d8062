#!/bin/sh
# Our file in conf.d and our blocks in pg_hba.conf and pg_ident.conf, checked by the server itself and
# taken back if it does not like them. Given: VERSION, NAME, OWNER, DATA, FOLDER, CONF, WRITE_CONF,
# TEXT, HBA and IDENT (empty: as they are). Runs behind common.sh.
mkdir -p /var/lib/jobwarden
old="/var/lib/jobwarden/$VERSION-$NAME.conf.old"
talk=$(mktemp)
spare=$(mktemp -d)
trap 'rm -rf "$talk" "$spare"' EXIT

parses() {
  runuser -u "$OWNER" -- "/usr/lib/postgresql/$VERSION/bin/postgres" -D "$DATA" \
    -c "config_file=$FOLDER/postgresql.conf" -C shared_preload_libraries >/dev/null 2>"$talk"
}

# The file as it was when the server last started with it; kept until the next good start.
keep_old() {
  [ -e "$old" ] && return
  if [ -e "$CONF" ]; then cp -p "$CONF" "$old"; else : >"$old"; fi
}

put_back() {
  if [ -s "$spare/conf" ]; then cp -p "$spare/conf" "$CONF"; else rm -f "$CONF"; fi
}

if [ -n "$WRITE_CONF" ]; then
  mkdir -p "${CONF%/*}"
  keep_old
  if [ -e "$CONF" ]; then cp -p "$CONF" "$spare/conf"; fi
  if [ -z "$TEXT" ]; then rm -f "$CONF"; else printf '%s' "$TEXT" | put "$CONF" "$OWNER:$OWNER" 644 || exit 1; fi
  if ! parses; then
    put_back
    fail "the server does not accept the new $CONF, so the old one is back: $(tail -n 3 "$talk")" \
      "mend postgres.settings, or the configuration of the server, then deploy again"
  fi
fi

hba=$(echo 'SHOW hba_file' | ask postgres)
ident=$(echo 'SHOW ident_file' | ask postgres)
[ -n "$hba$ident" ] ||
  fail "the server of $VERSION/$NAME does not answer" "systemctl start postgresql@$VERSION-$NAME, then deploy again"
if [ -n "$HBA" ]; then
  cp -p "$hba" "$spare/hba"
  printf '%s' "$HBA" | put "$hba" "$(stat -c %U:%G "$hba")" "$(stat -c %a "$hba")" || exit 1
fi
if [ -n "$IDENT" ]; then
  cp -p "$ident" "$spare/ident"
  printf '%s' "$IDENT" | put "$ident" "$(stat -c %U:%G "$ident")" "$(stat -c %a "$ident")" || exit 1
fi

# A reload takes effect a moment later; the server says when.
reload() {
  before=$(echo 'SELECT pg_catalog.pg_conf_load_time()' | ask postgres)
  echo 'SELECT pg_catalog.pg_reload_conf()' | ask postgres >/dev/null ||
    fail "the server of $VERSION/$NAME does not answer" "systemctl start postgresql@$VERSION-$NAME, then deploy again"
  tries=0
  until [ "$(echo "SELECT pg_catalog.pg_conf_load_time() > '$before'" | ask postgres)" = t ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 50 ] || fail "the server did not read its configuration again" "read its log, then deploy again"
    sleep 0.1
  done
}

reload
wrong=$(echo "SELECT line_number || ': ' || error FROM pg_catalog.pg_hba_file_rules WHERE error IS NOT NULL" | ask postgres)
if [ -n "$wrong" ] && [ -n "$HBA" ]; then
  cp -p "$spare/hba" "$hba"
  if [ -e "$spare/ident" ]; then cp -p "$spare/ident" "$ident"; fi
  reload
  fail "pg_hba.conf would not be valid, so the old one is back: line $wrong" "mend that line, then deploy again"
fi
if [ -z "$TEXT" ] && [ -n "$WRITE_CONF" ]; then rm -f "/var/lib/jobwarden/$VERSION-$NAME.proof"; fi
if [ "$(echo "SELECT count(*) FROM pg_catalog.pg_settings WHERE pending_restart" | ask postgres)" = 0 ]; then
  rm -f "$old"
fi
