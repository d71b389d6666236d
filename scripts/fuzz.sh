#!/usr/bin/env bash
# Runs every fuzzer (or FUZZER=NAME) under libFuzzer, ASan and UBSan for FUZZ_SECONDS each. Starts
# from tests/corpus/NAME and the inputs found before (build/clang/corpus/NAME); writes only there.
# FUZZ_RECORD=1: also puts the table of results into docs/hacking.md.
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
rows=()
TIMEFORMAT='%U %S'
for fuzzer in "${fuzzers[@]}"; do
  step "$fuzzer for $seconds s"
  found=build/clang/corpus/$fuzzer
  crashes=build/clang/crashes/$fuzzer/
  log=build/clang/$fuzzer.log
  mkdir -p "$found" "$crashes"
  if cpu=$({ time "build/clang/tests/$fuzzer" -max_total_time="$seconds" -timeout=10 \
      -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$crashes" "$found" \
      "tests/corpus/$fuzzer" >"$log" 2>&1; } 2>&1); then
    rows+=("$(awk -v name="$fuzzer" -v cpu="$cpu" '
      /inline 8-bit counters/ { sub(/.*\(/, ""); edges = $1 }
      /DONE +cov:/ { for (i = 1; i < NF; ++i) { if ($i == "cov:") cov = $(i + 1); if ($i == "corp:") corpus = $(i + 1) } }
      /number_of_executed_units:/ { inputs = $2 }
      END { split(cpu, t, " "); sub(/\/.*/, "", corpus)
            printf "| `%s` | %.0f | %d | %d of %d | %d |", name, t[1] + t[2], inputs, cov, edges, corpus }' "$log")")
    echo "    ${rows[-1]}"
  else
    tail -n 40 "$log"
    failed+=("$fuzzer: the input is in $crashes")
  fi
done
[ ${#failed[@]} -eq 0 ] || { printf 'found: %s\n' "${failed[@]}"; exit 1; }
if [ -n "${FUZZ_RECORD:-}" ]; then
  {
    sed '/<!--fuzz-->/q' docs/hacking.md
    echo "On $(date -u +%F), commit $(git rev-parse --short HEAD), \`FUZZ_SECONDS=$seconds make fuzz\`, nothing found:"
    echo
    echo "| fuzzer | CPU seconds | inputs tried | edges reached of those compiled in | corpus |"
    echo "|---|---|---|---|---|"
    printf '%s\n' "${rows[@]}"
    sed -n '/<!--\/fuzz-->/,$p' docs/hacking.md
  } >build/hacking.md
  mv build/hacking.md docs/hacking.md
fi
say "fuzz: ${#fuzzers[@]} fuzzers, nothing found"
