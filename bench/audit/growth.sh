#!/usr/bin/env bash
# Memory of the log's writer and verifier as the log grows.
#   bench/audit/growth.sh [ENTRIES]      default 10000000, which needs 6 GB of disk; removed after
set -euo pipefail
cd "$(dirname "$0")/../.."
scripts/build.sh test audit_growth_bench
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
build/test/audit_growth_bench "$folder/log" "${1:-10000000}"
