#!/usr/bin/env bash
# Verification of a log against hashing the same leaves and nodes, same threads, by turns.
#   bench/audit/verify.sh [ENTRIES [ROUNDS]]     default 1000000 7; needs 0.6 GB of disk a million
set -euo pipefail
cd "$(dirname "$0")/../.."
scripts/build.sh test audit_verify_bench
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for threads in 1 2; do
  build/test/audit_verify_bench "$folder/log" "${1:-1000000}" "$threads" "${2:-7}"
done
