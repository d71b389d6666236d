#!/usr/bin/env bash
# The PostgreSQL that ctest keeps while it runs: NOTE says in which folder it is.
#   postgres_fixture.sh NOTE start|stop
set -euo pipefail
note=$1
postgres=$(dirname "$0")/postgres.sh
if [ -f "$note" ]; then  # ours, or one that an earlier run has left
  "$postgres" stop "$(cat "$note")"
  rm -f -- "$note"
fi
if [ "$2" = start ]; then
  base=/tmp
  # In memory where there is room: quicker, and the tests of one machine disturb each other less.
  free=$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1) || free=0
  [ "$free" -lt 524288 ] || base=/dev/shm
  folder=$(mktemp -d "$base/ringfence-postgres-XXXXXX")
  RINGFENCE_OWNER=$PPID "$postgres" start "$folder"
  printf '%s' "$folder" >"$note"
fi
