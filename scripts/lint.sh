#!/usr/bin/env bash
# scripts/lint.sh fmt     formats every C++ source in place
# scripts/lint.sh check   format, layers, scripts' syntax, clang-tidy on changed files (ALL=1: all)
set -euo pipefail
source "$(dirname "$0")/common.sh"

# What git knows or would take: nothing that was built.
sources() { git ls-files --cached --others --exclude-standard -- "$@" | sort -u | existing; }
existing() { while read -r file; do [ ! -f "$file" ] || say "$file"; done; }
cxx() { sources 'src/*.cc' 'src/*.h' 'sim/*.cc' 'sim/*.c' 'sim/*.h' 'tests/*.cc' 'tests/*.h' \
                'probes/*.cc' 'probes/*.c' 'probes/*.h' 'bench/*.cc' 'bench/*.h'; }

# Sources to be read by clang-tidy: those changed since the common ancestor with the upstream
# branch (or since the last commit), and for a changed header the source and test of its name.
changed_sources() {
  local base
  base=$(git merge-base HEAD '@{upstream}' 2>/dev/null || git rev-parse HEAD)
  { git diff --name-only "$base" -- src; git ls-files --others --exclude-standard -- src; } |
    sed -n -e '/\.cc$/p' -e '/\.h$/{s/\.h$/.cc/p;s/\.cc$/_test.cc/p}' |
    sort -u | existing
}

tidy_sources() {
  if [ -n "${ALL:-}" ]; then sources 'src/*.cc'; else changed_sources; fi
}

case "${1:-}" in
  fmt)
    cxx | xargs -r clang-format-19 -i
    say "formatted $(cxx | wc -l) files"
    exit 0
    ;;
  check) ;;
  *) die "unknown action \"${1:-}\"" "fmt or check" ;;
esac

failed=()
step "clang-format on $(cxx | wc -l) files"
cxx | xargs -r clang-format-19 --dry-run -Werror || failed+=("format (\`make fmt\` mends it)")

step "layers"
"$PYTHON" scripts/check_layers.py || failed+=(layers)

step "scripts"
for file in $(sources 'scripts/*.sh' 'tests/*.sh' .ci/run); do
  bash -n "$file" || failed+=("$file")
done
for file in $(sources 'scripts/*.py' 'tests/*.py'); do
  "$PYTHON" -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file" ||
    failed+=("$file")
done

mapfile -t files < <(tidy_sources)
step "clang-tidy on ${#files[@]} files${ALL:+ (all)}"
if [ ${#files[@]} -gt 0 ]; then
  cmake --preset test >build/test.configure.log 2>&1 ||
    die "cmake could not configure the preset \"test\"" "see build/test.configure.log"
  # Each file's findings are printed whole, not mixed with another's.
  printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -I{} sh -c '
    findings=$(clang-tidy-19 --quiet -p build/test "{}" 2>/dev/null) || { echo "$findings"; exit 1; }
  ' || failed+=(clang-tidy)
fi

if [ ${#failed[@]} -gt 0 ]; then
  say ""
  printf 'lint: %s\n' "${failed[@]}"
  exit 1
fi
say "lint: clean"
