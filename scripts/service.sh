#!/usr/bin/env bash
# `make up` and `make down`: runs `ringfence up --detach` or `ringfence down`, as root where we can.
# STATE and LISTEN choose the state folder and the address.
set -euo pipefail
source "$(dirname "$0")/common.sh"
action=${1:?usage: scripts/service.sh up|down}
ringfence=$ROOT/build/release/ringfence
[ -x "$ringfence" ] || die "$ringfence is not built" "\`make build\` builds it"

# This clone's own, never one found further up.
state=${STATE:-${RINGFENCE_STATE:-$ROOT/.ringfence}}
arguments=()
case "$action" in
  up) arguments=(up --detach) ;;
  down) arguments=(down) ;;
  *) die "unknown action \"$action\"" "up or down" ;;
esac
arguments+=(--state "$state")
[ "$action" = down ] || [ -z "${LISTEN:-}" ] || arguments+=(--listen "$LISTEN")

if is_root; then
  exec "$ringfence" "${arguments[@]}"
elif command -v sudo >/dev/null; then
  say "a node needs root for its jailer (the server and the agent run without): using sudo"
  exec sudo -- "$ringfence" "${arguments[@]}"
else
  say "a node needs root for its jailer, and there is no sudo here: starting without;" \
      "jobs will be refused with the reason until it runs as root"
  exec "$ringfence" "${arguments[@]}"
fi
