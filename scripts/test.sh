#!/usr/bin/env bash
# `make test`: builds, runs unit tests, fuzz corpora and layer checks (ctest), then the end-to-end
# tests (pytest), and sums up. Results as JUnit XML under build/PRESET/results/.
#   PRESET=dev    another preset    TESTS=REGEX  only ctest's tests that match, no end-to-end
#   UNIT_ONLY=1   no end-to-end tests    SANITIZE=1  the unit tests under ASan and UBSan (build/dev)
# CI=true implies SANITIZE=1.
set -euo pipefail
source "$(dirname "$0")/common.sh"
preset=${PRESET:-test}
build=$ROOT/build/$preset
results=$build/results

expected=()
# A worker is confined so closely that a sanitizer's runtime cannot start in it.
with_a_worker='^jailer/(AttackTest\.(OnlyTheLeased|WhatAJobLeaves)|CrashTest\.TheNextJailer|RefusalTest\.(ALeaseStartsOnce|NoReceipt|CleanGpus)|UnprivilegedTest\.Runs|HeldLeasesTest|NoCdiTest|ImageBoxTest|MigTest|MigFailsTest)'

# unit_tests PRESET [CTEST-OPTION...]: runs what ctest knows. A failure is counted from the results,
# so that the other tests run all the same.
unit_tests() {
  local in=$ROOT/build/$1 out=$ROOT/build/$1/results only=("${@:2}")
  rm -rf "$out"
  mkdir -p "$out"
  expected+=("$out/ctest.xml")
  step "unit tests, fuzz corpora, layer checks (build/$1)"
  [ -z "${TESTS:-}" ] || only+=(-R "$TESTS")
  ctest --test-dir "$in" -j "$(nproc)" --timeout 300 --output-on-failure --no-tests=error \
    --test-output-size-passed 65536 --test-output-size-failed 65536 \
    --output-junit "$out/ctest.xml" "${only[@]}" >"$out/ctest.log" 2>&1 || true
  # The log has a line for each passed test; people want the others.
  grep -vE '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test .* Passed +[0-9.]+ sec$)' "$out/ctest.log" || true
}

if [ -n "${SANITIZE:-${CI:-}}" ] && [ "$preset" = test ] && [ -z "${TESTS:-}" ]; then
  scripts/build.sh test ringfence_programs jailer_test simulation
  unit_tests test -R "$with_a_worker|^simulation/"
  scripts/setup.sh fuzz  # clang, which takes two thirds of g++'s time for sanitized code
  scripts/build.sh dev unit_tests
  unit_tests dev -E "$with_a_worker|^simulation/"
else
  scripts/build.sh "$preset"
  case "$preset" in
    dev | tsan) unit_tests "$preset" -E "$with_a_worker" ;;
    *) unit_tests "$preset" ;;
  esac
fi

if [ -z "${TESTS:-}" ] && [ -z "${UNIT_ONLY:-}" ]; then
  step "end-to-end tests (against build/$preset)"
  expected+=("$results/e2e.xml")
  RINGFENCE_BUILD_DIR=$build PYTHONDONTWRITEBYTECODE=1 \
    "$PYTHON" -m pytest -p no:cacheprovider -q -ra --junitxml "$results/e2e.xml" tests/e2e || true
  step "faults: at each step of a lease, whoever is at it dies (make faults: everybody, everywhere)"
  expected+=("$results/faults.xml")
  RINGFENCE_BUILD_DIR=$build PYTHONDONTWRITEBYTECODE=1 \
    "$PYTHON" -m pytest -p no:cacheprovider -q -ra --junitxml "$results/faults.xml" tests/faults || true
fi

exec "$PYTHON" scripts/test_summary.py "${expected[@]}"
