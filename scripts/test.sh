#!/usr/bin/env bash
# `make test`: builds, runs unit tests, fuzz corpora and layer checks (ctest), then the end-to-end
# tests (pytest), and sums up. Results as JUnit XML under build/PRESET/results/.
#   PRESET=dev    another preset    TESTS=REGEX  only ctest's tests that match, no end-to-end
#   UNIT_ONLY=1   no end-to-end tests
set -euo pipefail
source "$(dirname "$0")/common.sh"
preset=${PRESET:-test}
build=$ROOT/build/$preset
results=$build/results

scripts/build.sh "$preset"
rm -rf "$results"
mkdir -p "$results"
expected=("$results/ctest.xml")

step "unit tests, fuzz corpora, layer checks"
only=()
[ -z "${TESTS:-}" ] || only=(-R "$TESTS")
# A failure is counted from the results, so that the end-to-end tests run all the same.
ctest --test-dir "$build" -j "$(nproc)" --timeout 300 --output-on-failure --no-tests=error \
  --test-output-size-passed 65536 --test-output-size-failed 65536 \
  --output-junit "$results/ctest.xml" "${only[@]}" >"$results/ctest.log" 2>&1 || true
# The log has a line for each passed test; people want the others.
grep -vE '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test .* Passed +[0-9.]+ sec$)' "$results/ctest.log" || true

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
