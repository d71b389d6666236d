#!/usr/bin/env bash
# Installs from Debian's packages, for the groups that are named, what is not there yet.
# With nothing missing it only asks dpkg, changes nothing and needs no network.
#   scripts/setup.sh build|run|test|bench|package|package-test|format|lint|fuzz ...
set -euo pipefail
source "$(dirname "$0")/common.sh"

packages_of() {
  case "$1" in
    build) say g++ cmake ninja-build ccache pkg-config libboost1.81-dev libboost-json1.81-dev \
               libssl-dev libsqlite3-dev libpq-dev libyaml-cpp-dev libseccomp-dev \
               libnftables-dev libarchive-dev libre2-dev libsimdjson-dev \
               libzstd-dev ;;
    run) say runc ;;
    bench) say python3 python3-yaml util-linux ;;
    test) say libgtest-dev mold python3 python3-pytest python3-yaml python3-jsonschema openssl postgresql \
              dpkg-dev binutils lintian busybox-static systemd man-db bash zsh fish podman ;;
    package) say dpkg-dev binutils ;;
    package-test) say python3 python3-pytest debootstrap util-linux ;;
    format) say clang-format-19 ;;
    lint) say clang-tidy-19 python3 ;;
    fuzz) say clang-19 libclang-rt-19-dev ;;
    *) die "unknown group \"$1\"" "the groups are build, run, test, bench, package, package-test, format, lint and fuzz" ;;
  esac
}

# Prints those of its arguments that are not installed.
missing_of() {
  dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
    awk -v wanted="$*" '
      $1 == "installed" { have[$2] = 1 }
      END { n = split(wanted, names, " "); for (i = 1; i <= n; i++) if (!(names[i] in have)) print names[i] }'
}

apt() {
  local as_root=()
  is_root || as_root=(sudo --)
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 \
    -o Acquire::Retries=3 "$@"
}

lists_know() {  # whether apt has heard of every one of these packages
  local name
  for name in "$@"; do
    apt-cache show --no-all-versions "$name" >/dev/null 2>&1 || return 1
  done
}

[ $# -gt 0 ] || die "no group named" "scripts/setup.sh build run test"
wanted=()
for group in "$@"; do
  line=$(packages_of "$group")  # a line of its own: an unknown group must end the script
  read -ra names <<<"$line"
  wanted+=("${names[@]}")
done

if ! command -v dpkg-query >/dev/null; then
  say "not a Debian system: nothing is installed; needed here would be (by Debian 12's names):"
  say "  ${wanted[*]}"
  exit 0
fi
mapfile -t missing < <(missing_of "${wanted[@]}" || true)
[ ${#missing[@]} -gt 0 ] || exit 0

step "installing ${#missing[@]} Debian packages for: $* (once; a minute or a few, mostly download)"
say "    ${missing[*]}"
if ! is_root; then
  command -v sudo >/dev/null ||
    die "packages are missing, and installing them needs root" \
        "as root: apt-get install --no-install-recommends ${missing[*]}"
  say "    apt needs root: using sudo"
fi

install() { apt install -y --no-install-recommends "${missing[@]}"; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if { lists_know "${missing[@]}" && install; } >"$log" 2>&1; then
  :
else
  say "    fetching the newest package lists first"
  if ! { apt update && install; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    die "apt could not install: ${missing[*]}" \
        "its last words are above; without a network, install these packages from a mirror you reach"
  fi
fi
mapfile -t missing < <(missing_of "${wanted[@]}" || true)
[ ${#missing[@]} -eq 0 ] || die "apt reported success, yet these are not installed: ${missing[*]}"
say "    installed"
