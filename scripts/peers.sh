#!/usr/bin/env bash
# `make peers`: other implementations judge our audit log, decisions and matches. The first needs Go
# 1.25 or newer and a Go module proxy, the others a cargo and crates; nothing else of Ringfence does.
#   PEERS=REGEX   only the Go tests that match
#   CASES=N       so many random cases of 20 Cedar requests each (3000)
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

if ! command -v cargo >/dev/null; then
  echo "no cargo: the crates cedar-policy and rsigma-eval are not asked"
  exit 0
fi
scripts/build.sh test bench_cedar bench_sigma
export RINGFENCE_BUILD_DIR=$ROOT/build/test PYTHONDONTWRITEBYTECODE=1
step "the crate cedar-policy must decide as our engine does"
"$PYTHON" bench/cedar.py --requests 2000 --rounds 1 --peer-requests 500
step "the crate cedar-policy must judge random policies and requests as we do"
"$PYTHON" tests/peers/cedar/random_cases.py build/peers/cargo-cedar/release/cedar-peer build/test/ringfence \
  --cases "${CASES:-3000}" --keep build/peers/cedar-case
step "what the crate rsigma-eval finds, beside ours"
"$PYTHON" bench/sigma.py --events 20000 --rounds 1
