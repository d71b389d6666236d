#!/bin/bash
# What `make gpu-test` runs on a machine with an NVIDIA GPU: our declarations against the vendor's
# headers, the same questions to the vendor's libraries and to our stand-ins, the inventory, a scrub of
# every card, how far the scrub is from the memory's own speed, whether a living neighbour's on-chip memory
# can be read (not under time-slicing, but under MPS), and, where there is an nvcc, whether the kernels
# that are built in are what it makes of their source. Needs the built tests (gpu_check, scrub_bench,
# chip_probe, ringfence-probe, sim/lib) and g++; prints Markdown.
#
#   tests/gpu/run.sh [BUILD-FOLDER]      default: build/test
#   DRIVER_ROOT=/                        where the driver is
#   VENDOR_INCLUDE=DIR                   where nvml.h and cuda.h are; looked for when not given
#
# Exit status 0: everything was checked and right. A check that could not be made is a failure.
set -u -o pipefail
source_folder=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$source_folder/build/test}
driver_root=${DRIVER_ROOT:-/}
failures=0

if [ ! -x "$build/tests/gpu_check" ]; then
  echo "gpu-test: no $build/tests/gpu_check; build the tests first, or name the build folder" >&2
  exit 2
fi

find_headers() {
  local nvcc_folder=
  if command -v nvcc > /dev/null; then
    nvcc_folder=$(dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")")
  fi
  local folder
  for folder in "${VENDOR_INCLUDE:-}" "${CUDA_HOME:-/nonexistent}/include" \
    "$nvcc_folder/include" "$nvcc_folder/targets/x86_64-linux/include" \
    /usr/local/cuda/include /usr/local/cuda-*/include /usr/include; do
    if [ -n "$folder" ] && [ -f "$folder/$1" ]; then
      echo "$folder"
      return 0
    fi
  done
  return 1
}

check_headers() {  # NAME HEADER
  local folder
  if ! folder=$(find_headers "$2"); then
    echo "| **NOT CHECKED** | $2 | not found on this machine |"
    return 1
  fi
  local words
  if words=$(${CXX:-g++} -std=c++20 -fsyntax-only -D"CHECK_$1" -I"$source_folder/src" \
    -isystem "$folder" "$source_folder/tests/gpu/abi_check.cc" 2>&1); then
    echo "| ok | $2 | sizes, offsets, values and arguments agree with $folder/$2 |"
    return 0
  fi
  echo "| **WRONG** | $2 | see below |"
  echo "$words" >&2
  return 1
}

echo "# GPU test"
echo
if command -v nvidia-smi > /dev/null; then
  nvidia-smi --query-gpu=name,driver_version,vbios_version,memory.total --format=csv,noheader
  echo
fi
echo "| result | header | |"
echo "|---|---|---|"
check_headers NVML nvml.h || failures=$((failures + 1))
check_headers CUDA cuda.h || failures=$((failures + 1))
echo
"$build/tests/gpu_check" --driver-root "$driver_root" || failures=$((failures + 1))
echo
"$build/tests/gpu_check" --simulate "$build/sim/lib" > /dev/null || {
  echo "**WRONG**: the stand-ins do not answer their own table; run gpu_check --simulate"
  failures=$((failures + 1))
}
echo
echo "## Scrub against the memory's own speed"
echo
echo '```json'
bench=$("$build/tests/scrub_bench" --driver-root "$driver_root") || failures=$((failures + 1))
echo "$bench"
echo '```'
ratio=$(echo "$bench" | sed -n 's/.*"ratio":\([0-9.]*\).*/\1/p')
if awk "BEGIN { exit !(${ratio:-99} <= 1.15) }"; then
  echo "overwriting and reading back takes ${ratio} of memset and read: at most 1.15"
else
  echo "**WRONG**: overwriting and reading back takes ${ratio:-?} of memset and read, more than 1.15"
  failures=$((failures + 1))
fi
echo
echo "## On-chip shared memory of a living neighbour"
echo
if command -v "${MPS_CONTROL:-nvidia-cuda-mps-control}" > /dev/null; then
  echo '```json'
  if "$build/tests/chip_probe" "$build/ringfence-probe"; then
    echo '```'
    echo "under time-slicing nothing was found, under MPS the neighbour's words, once it had gone nothing"
  else
    echo '```'
    echo "**WRONG**: not held under time-slicing, or the leak under MPS was not found"
    failures=$((failures + 1))
  fi
else
  echo "**NOT CHECKED**: there is no nvidia-cuda-mps-control here"
  failures=$((failures + 1))
fi
echo
if command -v "${NVCC:-nvcc}" > /dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
  echo "## Kernels and their source"
  echo
  "$source_folder/scripts/kernels.sh" check | tail -1 || failures=$((failures + 1))
else
  echo "no nvcc here: that the kernels are what it makes of their source was not tried"
fi
echo
echo "gpu-test: $failures part(s) failed"
[ "$failures" -eq 0 ]
