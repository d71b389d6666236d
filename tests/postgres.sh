#!/usr/bin/env bash
# A private PostgreSQL for a test: its own data, reachable by one Unix socket only, gone afterwards.
# Debian's default cluster is never touched. Usable from any test:
#   tests/postgres.sh start DIR      makes it in DIR (new or empty) and prints its URL
#   tests/postgres.sh database DIR   makes another database in it and prints its URL
#   tests/postgres.sh kill DIR       kill -9, all of its processes at once
#   tests/postgres.sh pause DIR      SIGSTOP to all of its processes; resume: SIGCONT
#   tests/postgres.sh restart DIR    starts it again, whatever became of it
#   tests/postgres.sh stop DIR       ends it and removes DIR
# PostgreSQL refuses to run as root, so for root it runs as the user that its package has made.
# RINGFENCE_OWNER=PID: stops by itself once that process is gone, however that happened.
# RINGFENCE_POSTGRES_TEMPLATE=DIR: keeps fresh data there, so that the next start is quicker.
set -euo pipefail

die() {
  printf 'postgres.sh: %s\n' "$1" >&2
  exit 1
}

[ $# -eq 2 ] || die "usage: postgres.sh start|database|kill|pause|resume|restart|stop DIR"
command=$1
dir=$(realpath -m -- "$2")
data=$dir/data
bin=$(find /usr/lib/postgresql/*/bin -maxdepth 0 2>/dev/null | sort -V | tail -n 1)
[ -x "$bin/postgres" ] || die "PostgreSQL is not installed (Debian: apt-get install postgresql)"
as=()
[ "$(id -u)" != 0 ] || as=(setpriv --reuid=postgres --regid=postgres --clear-groups --)

url() {
  printf 'postgresql://ringfence@/%s?host=%s\n' "$1" "$dir"
}

make_database() {
  "${as[@]}" "$bin/psql" -qX -h "$dir" -U ringfence -d postgres -c "CREATE DATABASE $1" ||
    die "no database could be made"
  url "$1"
}

# Its main process first, then those that it started.
pids() {
  local main
  main=$(head -n 1 "$data/postmaster.pid" 2>/dev/null) || return 0
  printf '%s\n' "$main"
  cat "/proc/$main/task/$main/children" 2>/dev/null | tr ' ' '\n' || true
}

# Whether it runs; one that is dead and was not buried yet does not.
runs() {
  local state
  state=$(awk '$1 == "State:" { print $2 }' "/proc/$1/status" 2>/dev/null) && [ "$state" != Z ]
}

# When it was started; numbers of processes are given out again.
since() {
  sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | awk '$1 != "Z" { print $20 }'
}

signal() {
  local name=$1 all
  mapfile -t all < <(pids)
  [ ${#all[@]} -eq 0 ] || kill "-$name" "${all[@]}" 2>/dev/null || true
}

launch() {
  (cd / && "${as[@]}" "$bin/pg_ctl" -s -w -t 180 -D "$data" -l "$dir/log" start >/dev/null 2>&1) ||
    { tail -n 20 "$dir/log" >&2; die "it did not start"; }
}

fresh() {
  local template=${RINGFENCE_POSTGRES_TEMPLATE:-}
  if [ -n "$template" ] && [ -d "$template/data" ]; then
    cp -a "$template/data" "$data"
    return
  fi
  # ICU's order of text, unlike that of bytes, as many clusters have it.
  (cd / && "${as[@]}" "$bin/initdb" -D "$data" -U ringfence -E UTF8 --locale=C.UTF-8 \
    --locale-provider=icu --icu-locale=en-US --auth=trust --no-sync --wal-segsize=1 >"$dir/initdb.log" 2>&1) ||
    { tail -n 20 "$dir/initdb.log" >&2; die "initdb failed"; }
  printf '%s\n' "local all with_password scram-sha-256" "local all all trust" >"$data/pg_hba.conf"
  cat >>"$data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_permissions = 0777
max_connections = 60
shared_buffers = 16MB
max_wal_size = 64MB
CONF
  if [ -n "$template" ]; then  # whoever is first; a rename is all or nothing
    local mine
    mine=$(mktemp -d -- "$template.XXXXXX") && cp -a "$data" "$mine/data" &&
      mv -nT -- "$mine" "$template" 2>/dev/null || true
    rm -rf -- "$mine"
  fi
}

case $command in
  start)
    [ ! -e "$data" ] || die "$data exists already"
    mkdir -p -- "$dir"
    chmod 0755 -- "$dir"
    [ "$(id -u)" != 0 ] || chown postgres:postgres -- "$dir"
    "${as[@]}" test -w "$dir" ||
      die "the user postgres cannot reach $dir: use a folder right below /tmp"
    fresh
    printf "unix_socket_directories = '%s'\n" "$dir" >>"$data/postgresql.conf"
    launch
    if [ -n "${RINGFENCE_OWNER:-}" ]; then
      since=$(since "$RINGFENCE_OWNER")
      (
        while [ "$(since "$RINGFENCE_OWNER")" = "$since" ] && [ -d "$data" ]; do sleep 1; done
        [ ! -d "$data" ] || "$0" stop "$dir"
      ) </dev/null >/dev/null 2>&1 &
    fi
    make_database ringfence
    ;;
  database) make_database "test_$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')" ;;
  kill) signal KILL ;;
  pause) signal STOP ;;
  resume) signal CONT ;;
  restart)
    signal CONT
    signal QUIT  # where it still runs: at once, without writing anything more
    main=$(head -n 1 "$data/postmaster.pid" 2>/dev/null) || main=none
    while runs "$main"; do sleep 0.05; done
    rm -f -- "$data/postmaster.pid" "$dir"/.s.PGSQL.*  # its zombie may still have the number
    launch
    url ringfence
    ;;
  stop)
    signal KILL
    rm -rf -- "$dir"
    ;;
  *) die "unknown command \"$command\"" ;;
esac
