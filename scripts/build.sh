#!/usr/bin/env bash
# Configures and builds one preset of CMakePresets.json: scripts/build.sh PRESET [TARGET...]
set -euo pipefail
source "$(dirname "$0")/common.sh"
preset=${1:?usage: scripts/build.sh PRESET [TARGET...]}
shift

# A compiler needs up to about 1.5 GB on the files that include Beast.
jobs=${JOBS:-}
if [ -z "$jobs" ]; then
  by_memory=$(awk '/^MemAvailable:/ { print int($2 / 1500000) }' /proc/meminfo)
  jobs=$(nproc)
  [ "$jobs" -le "$by_memory" ] || jobs=$((by_memory > 1 ? by_memory : 1))
fi

if [ -d "build/$preset" ]; then
  step "building build/$preset (only what changed; $jobs at once)"
else
  step "building build/$preset ($jobs at once; the first time takes a few minutes)"
fi
# A clean clone's cache is empty: asking it costs more than it saves.
[ -z "${CI:-}" ] || export CCACHE_DISABLE=1
# Without this ccache does not keep what was compiled with precompiled headers.
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}
log=build/$preset.configure.log
mkdir -p build
if ! cmake --preset "$preset" >"$log" 2>&1; then
  cat "$log" >&2
  die "cmake could not configure the preset \"$preset\"" "\`make setup\` installs what it needs"
fi
# -k 0 would bury the first error; ninja's one status line is enough on a terminal.
ninja -C "build/$preset" -j "$jobs" "$@"
