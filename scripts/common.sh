# Sourced by the scripts beside it: where we are, how we speak, how we become root.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD

say() { printf '%s\n' "$*"; }
step() { printf '==> %s\n' "$*"; }
die() {
  printf 'error: %s\n' "$1" >&2
  if [ $# -gt 1 ]; then
    printf 'hint: %s\n' "${@:2}" >&2
  fi
  exit 1
}

is_root() { [ "$(id -u)" = 0 ]; }

# Python from Debian, whatever else is first in PATH: Debian's modules are installed for it.
PYTHON=/usr/bin/python3
