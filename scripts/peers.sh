#!/usr/bin/env bash
# `make peers`: other implementations judge our audit log. Needs Go 1.25 or newer and a Go module
# proxy; nothing else of Ringfence does.
#   PEERS=REGEX   only the Go tests that match
#   KEEP=1        leaves what it made under build/peers
set -euo pipefail
source "$(dirname "$0")/common.sh"
source scripts/go.sh
need_go

scripts/build.sh test ringfence ringfence-jailer ringfence-worker ringfence-init ringfence-unpack ringfence-resolve ringfence_content \
  ringfence_sim_nvml ringfence_sim_cuda peer_logs
peers=$ROOT/build/peers
rm -rf "$peers/logs"
mkdir -p "$peers/logs"
prepare_merkle
step "logs of many sizes, with proofs"
build/test/peer_logs "$peers/logs"
step "Go's sumdb/tlog and note, Tessera's client and fsck, and a tlog-witness judge them"
log=$peers/go-test.log
if ! (cd tests/peers && RINGFENCE_BUILD_DIR=$ROOT/build/test RINGFENCE_PEER_LOGS=$peers/logs \
  go test -count=1 -timeout 20m -v -run "${PEERS:-.}" ./...) >"$log" 2>&1; then
  cat "$log"
  die "a peer does not accept our log" "what it says is above and in build/peers/go-test.log"
fi
grep -E '^(--- |ok )' "$log"
[ -n "${KEEP:-}" ] || rm -rf "$peers/logs"
