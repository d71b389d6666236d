#!/usr/bin/env bash
# `make bench`: runs the benchmarks in turn; each adds its rows to bench/LEDGER.md.
#   BENCH=NAME    only this one, as api
set -euo pipefail
source "$(dirname "$0")/common.sh"
is_root || die "the benchmarks start a node, which needs root for its jailer" "run make bench as root"
export RINGFENCE_BUILD_DIR=$ROOT/build/release PYTHONDONTWRITEBYTECODE=1 LEDGER=1

for name in memory run_latency audit api; do
  [ -z "${BENCH:-}" ] || [ "$BENCH" = "$name" ] || continue
  step "bench/$name.py"
  "$PYTHON" "bench/$name.py"
done
