#!/usr/bin/env bash
# Runs every fuzzer (or FUZZER=NAME) under libFuzzer, ASan and UBSan for FUZZ_SECONDS each. Starts
# from tests/corpus/NAME and the inputs found before (build/clang/corpus/NAME); writes only there.
set -euo pipefail
source "$(dirname "$0")/common.sh"
seconds=${FUZZ_SECONDS:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || die "FUZZ_SECONDS=$seconds is not a number of seconds"

mapfile -t fuzzers < <(printf '%s\n' src/*/*_fuzz.cc | sed 's|.*/||; s|\.cc$||' | sort)
if [ -n "${FUZZER:-}" ]; then
  [[ " ${fuzzers[*]} " == *" $FUZZER "* ]] || die "no fuzzer \"$FUZZER\"" "one of: ${fuzzers[*]}"
  fuzzers=("$FUZZER")
fi
scripts/build.sh clang "${fuzzers[@]}"

failed=()
for fuzzer in "${fuzzers[@]}"; do
  step "$fuzzer for $seconds s"
  found=build/clang/corpus/$fuzzer
  crashes=build/clang/crashes/$fuzzer/
  log=build/clang/$fuzzer.log
  mkdir -p "$found" "$crashes"
  if "build/clang/tests/$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
      -print_final_stats=1 -artifact_prefix="$crashes" "$found" "tests/corpus/$fuzzer" \
      >"$log" 2>&1; then
    grep -oE 'DONE +cov: [0-9]+ ft: [0-9]+ corp: [0-9]+|number_of_executed_units: [0-9]+' "$log" |
      sed 's/^/    /'
  else
    tail -n 40 "$log"
    failed+=("$fuzzer: the input is in $crashes")
  fi
done
[ ${#failed[@]} -eq 0 ] || { printf 'found: %s\n' "${failed[@]}"; exit 1; }
say "fuzz: ${#fuzzers[@]} fuzzers, nothing found"
