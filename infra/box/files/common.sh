#!/bin/sh
# What every script for a box begins with. The caller puts variables before it and a script behind.
exec </dev/null
cd /
export LC_ALL=C.UTF-8 PGCLIENTENCODING=UTF8 PGCONNECT_TIMEOUT=5 PGAPPNAME=jobwarden
# A connection that drops must not leave a step half done.
trap '' HUP PIPE

# Say what went wrong and what to do, in two lines the caller knows, and end.
fail() {
  printf 'jobwarden-error: %s\n' "$(printf '%s' "$1" | tr '\n' ' ')" >&2
  printf 'jobwarden-try: %s\n' "$(printf '%s' "$2" | tr '\n' ' ')" >&2
  exit 1
}

# psql as the server's own user, by the port and socket of the server that runs: ask DATABASE <SQL
ask() {
  runuser -u "$OWNER" -- "/usr/lib/postgresql/$VERSION/bin/psql" -XAtqw -v ON_ERROR_STOP=1 \
    -p "$(sed -n 4p "$DATA/postmaster.pid")" -h "$(sed -n 5p "$DATA/postmaster.pid")" -d "$1"
}

# Write stdin to a file in one step, with owner and mode: a full disk leaves the old one as it was, and
# nobody reads a secret on the way. Use it behind a pipe, and end with its exit code.
put() {
  umask 077
  put_new="${1%/*}/.${1##*/}.new"
  if ! { cat >"$put_new" && chown "$2" "$put_new" && chmod "$3" "$put_new" && mv -f "$put_new" "$1"; } 2>/dev/null; then
    put_why=$(df -h "${1%/*}" | tail -n 1)
    rm -f "$put_new"
    fail "$1 could not be written; its disk: $put_why" "make room or mend the disk, then deploy again"
  fi
}

# Write the texts PREFIX_0, PREFIX_1 ... to the files that are named, for all to read:
# put_all PREFIX FOLDER NAME...
put_all() {
  put_prefix=$1 put_folder=$2 put_index=0 put_text=
  shift 2
  for put_name; do
    eval "put_text=\$${put_prefix}_$put_index"
    printf '%s' "$put_text" | put "$put_folder/$put_name" root:root 644 || exit 1
    put_index=$((put_index + 1))
  done
}
