#!/usr/bin/env bash
# Entries integrated a second, all durable: our log's writer and Tessera's POSIX storage, with the
# same entries on the same disk, by turns. Needs Go, see scripts/go.sh.
#   bench/audit/tessera.sh [ENTRIES [ROUNDS]]    default 50000 5    FOLDER=DIR where (default /tmp)
set -euo pipefail
source "$(dirname "$0")/../../scripts/common.sh"
source scripts/go.sh
need_go
entries=${1:-50000} rounds=${2:-5}
scripts/build.sh test audit_append_bench
mkdir -p build/peers
(cd bench/audit/tessera && go build -o "$ROOT/build/peers/tessera" .)
folder=$(mktemp -d -p "${FOLDER:-/tmp}")
trap 'rm -rf "$folder"' EXIT
build/test/audit_append_bench make "$entries" "$folder/entries"
for _ in $(seq "$rounds"); do
  # 256 is what Tessera has by default, 4096 what our server has.
  for batch in 256 4096 16384; do
    rm -rf "$folder/ours" "$folder/theirs"
    build/test/audit_append_bench run "$folder/entries" "$folder/ours" "$batch"
    build/peers/tessera "$folder/entries" "$folder/theirs" "$batch" 2>/dev/null
  done
done | tee "$folder/results"
awk '
  function median(list, n,  i, j, t) {
    for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (list[j] < list[i]) { t = list[i]; list[i] = list[j]; list[j] = t }
    return list[int((n + 1) / 2)]
  }
  { rate = $NF; sub("/s", "", rate); sub(":", "", $3); key = $1 " " $3; count[key]++; rates[key, count[key]] = rate + 0 }
  END {
    for (key in count) { delete list; for (i = 1; i <= count[key]; i++) list[i] = rates[key, i]; at[key] = median(list, count[key]) }
    for (batch = 256; batch <= 16384; batch *= batch == 256 ? 16 : 4)
      printf "median, batches of %d: ringfence %d/s, tessera %d/s, ratio %.1f\n", batch, at["ringfence " batch], at["tessera " batch], at["ringfence " batch] / at["tessera " batch]
    printf "median, each with its own default: ringfence (4096) %d/s, tessera (256) %d/s, ratio %.1f\n", at["ringfence 4096"], at["tessera 256"], at["ringfence 4096"] / at["tessera 256"]
  }' "$folder/results"
