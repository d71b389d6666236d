#!/usr/bin/env bash
# scripts/kernels.sh          compiles src/gpu/kernels/scrub.cu to scrub.ptx, where there is an nvcc
# scripts/kernels.sh check    compiles it aside and fails if scrub.ptx says anything else
#
# nvcc writes the PTX version of its own release; a driver takes only those it knows. So the version
# is lowered to 7.0 (CUDA 11.0, drivers from R450 on), and ptxas, which refuses whatever a declared
# version does not have, assembles the lowered text for every architecture it can: that is the
# proof that nothing newer is in it. docs/decisions/0013-scrub-kernels.md says more.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly folder=src/gpu/kernels version=7.0 target=sm_80
case "${1:-write}" in
  write | check) ;;
  *) echo "kernels: unknown action \"$1\"; write or check" >&2; exit 2 ;;
esac
nvcc=$(command -v "${NVCC:-nvcc}" || command -v /usr/local/cuda/bin/nvcc) || {
  echo "kernels: there is no nvcc here; only \`make kernels\` needs it, no build does" >&2
  exit 2
}
ptxas=$(dirname "$(readlink -f "$nvcc")")/ptxas
[ -x "$ptxas" ] || ptxas=ptxas
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

digest() { sha256sum | cut -d' ' -f1; }

# The comments at its top name the compiler's build; the rest is what a driver reads.
"$nvcc" --ptx -arch=compute_80 -std=c++17 -O3 -Isrc -o "$work/raw.ptx" "$folder/scrub.cu"
compiler=$("$nvcc" --version | sed -n 's/^Cuda compilation tools, //p')
sed -e '/^\/\//d' -e "s/^\.version .*/.version $version/" "$work/raw.ptx" |
  sed -e '/./,$!d' -e 's/[[:space:]]*$//' > "$work/body.ptx"
grep -qx "\.target $target" "$work/body.ptx"
for architecture in sm_80 sm_86 sm_89 sm_90 sm_100 sm_120; do
  if "$nvcc" --list-gpu-code | grep -qx "$architecture"; then
    "$ptxas" -v -arch="$architecture" -o "$work/image" "$work/body.ptx" 2> "$work/words" || {
      cat "$work/words" >&2
      exit 1
    }
    echo "ptxas takes it as PTX $version for $architecture:"
    grep -A2 'Compiling\|Used\|spill' "$work/words" | grep 'Compiling\|registers\|spill' | sed 's/^ptxas info *: */  /'
  fi
done

{
  echo "// Made by scripts/kernels.sh; do not edit."
  for source in kernels/scrub.cu scrub_kernels.h; do
    echo "// gpu/$source sha256:$(digest < "src/gpu/$source")"
  done
  echo "// body sha256:$(digest < "$work/body.ptx")"
  echo "// compiler: nvcc $compiler"
  cat "$work/body.ptx"
} > "$work/scrub.ptx"

if [ "${1:-write}" = check ]; then
  if cmp -s "$work/scrub.ptx" "$folder/scrub.ptx"; then
    echo "scrub.ptx is what nvcc $compiler makes of scrub.cu"
    exit 0
  fi
  diff "$folder/scrub.ptx" "$work/scrub.ptx" | head -20 >&2 || true
  echo "scrub.ptx is not what nvcc $compiler makes of scrub.cu (another compiler, or not regenerated)" >&2
  exit 1
fi
cp "$work/scrub.ptx" "$folder/scrub.ptx"
echo "wrote $folder/scrub.ptx: $(wc -l < "$folder/scrub.ptx") lines"
