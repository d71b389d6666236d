#!/usr/bin/env bash
# `make bench`: runs the benchmarks in turn. The Python ones add their rows to bench/LEDGER.md and
# docs/specification.md; the others print theirs.
#   BENCH=NAME    only this one, as api; tessera (needs Go) and growth (6 GB of disk) only so
set -euo pipefail
source "$(dirname "$0")/common.sh"
is_root || die "the benchmarks start a node, which needs root for its jailer" "run make bench as root"
export RINGFENCE_BUILD_DIR=$ROOT/build/release PYTHONDONTWRITEBYTECODE=1 LEDGER=1

known=0
for name in memory run_latency audit api verify place sigma cedar detect telemetry tessera growth; do
  case "${BENCH:-}" in
    "") [ "$name" != tessera ] && [ "$name" != growth ] || continue ;;
    "$name") ;;
    *) continue ;;
  esac
  known=1
  if [ -e "bench/$name.py" ]; then
    step "bench/$name.py"
    "$PYTHON" "bench/$name.py"
  else
    step "bench/audit/$name.sh"
    "bench/audit/$name.sh"
  fi
done
[ "$known" = 1 ] ||
  die "no benchmark \"$BENCH\"" \
    "there are memory, run_latency, audit, api, verify, place, sigma, cedar, detect, telemetry, tessera and growth"
