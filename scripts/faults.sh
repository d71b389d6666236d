#!/usr/bin/env bash
# `make faults`: every step of a lease times every victim, spoiled disks, lines and clocks, and kills at
# random times; the table at the end says what became of each lease. A failure names the command that
# replays it.
#   FAULT_SEED=N  the dice    FAULT_ROUNDS=N  rounds of random kills    FAULT_ONLY=NAME  only these tests
set -euo pipefail
source "$(dirname "$0")/common.sh"
build=$ROOT/build/test

scripts/build.sh test
mkdir -p "$build/results"
step "faults (against build/test)"
FAULT_ALL=1 RINGFENCE_BUILD_DIR=$build PYTHONDONTWRITEBYTECODE=1 \
  exec "$PYTHON" -m pytest -p no:cacheprovider -v -ra --junitxml "$build/results/faults.xml" tests/faults
