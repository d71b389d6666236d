#!/usr/bin/env bash
# `make package`: a Debian package of what is built in a folder.
#   scripts/package.sh [BUILD-FOLDER [OUTPUT-FOLDER]]     (build/release, build/package)
#   PACKAGE_VERSION=V   another version than the program's own
# The same build gives the same bytes: times are those of the last commit (or SOURCE_DATE_EPOCH).
set -euo pipefail
source "$(dirname "$0")/common.sh"
build=$(realpath "${1:-build/release}")
output=$(realpath -m "${2:-build/package}")
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$ROOT" log -1 --format=%ct)}
export LC_ALL=C TZ=UTC
umask 022

ringfence=$build/ringfence
[ -x "$ringfence" ] || die "$ringfence is not built" "\`make package\` builds it"
version=${PACKAGE_VERSION:-$("$ringfence" --version | cut -d' ' -f2)}
architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root/DEBIAN"

put() { install -D -m "$1" "$2" "$root$3"; }                      # put MODE FILE PATH
put_text() { install -D -m "$1" /dev/stdin "$root$2"; }           # put_text MODE PATH <text
put_gzip() { mkdir -p "$(dirname "$root$2")" && gzip -9nc "$1" >"$root$2"; }  # put_gzip FILE PATH

put_programs() {
  local name
  put 0755 "$ringfence" /usr/bin/ringfence
  for name in ringfence-jailer ringfence-worker ringfence-init ringfence-unpack ringfence-probe \
              ringfence-hook ringfence-resolve; do
    put 0755 "$build/$name" "/usr/lib/ringfence/$name"
  done
  for name in libnvidia-ml.so.1 libcuda.so.1 libamd_smi.so libamdhip64.so; do
    put 0644 "$build/sim/lib/$name" "/usr/lib/ringfence/sim/lib/$name"
  done
  find "$root/usr/bin" "$root/usr/lib/ringfence" -type f \
    -exec strip --strip-unneeded --remove-section=.comment --remove-section=.note {} +
}

put_configuration() {
  local file
  put 0644 deploy/etc/ringfence.yaml /etc/ringfence/ringfence.yaml
  for file in deploy/etc/policy/*; do
    put 0644 "$file" "/etc/ringfence/policy/${file##*/}"
  done
  put 0644 deploy/logrotate /etc/logrotate.d/ringfence
  for file in deploy/systemd/*; do
    put 0644 "$file" "/lib/systemd/system/${file##*/}"
  done
  for file in content/sample-policy/*; do
    put 0644 "$file" "/usr/share/ringfence/sample-policy/${file##*/}"
  done
  for file in content/runtimes/*; do
    put 0644 "$file" "/usr/share/ringfence/runtimes/${file##*/}"
  done
  for file in content/checks/*; do
    put 0644 "$file" "/usr/share/ringfence/checks/${file##*/}"
  done
  for file in content/risk/*; do
    put 0644 "$file" "/usr/share/ringfence/risk/${file##*/}"
  done
  for file in content/controls/*; do
    put 0644 "$file" "/usr/share/ringfence/controls/${file##*/}"
  done
  for file in content/mappings/*; do
    put 0644 "$file" "/usr/share/ringfence/mappings/${file##*/}"
  done
  for file in content/pipelines/*; do
    put 0644 "$file" "/usr/share/ringfence/pipelines/${file##*/}"
  done
  for file in content/rules/gpu/*; do
    put 0644 "$file" "/usr/share/ringfence/rules/gpu/${file##*/}"
  done
  install -d "$root/var/lib/ringfence"
}

put_documents() {
  local page
  "$ringfence" completion bash | put_text 0644 /usr/share/bash-completion/completions/ringfence
  "$ringfence" completion zsh | put_text 0644 /usr/share/zsh/vendor-completions/_ringfence
  "$ringfence" completion fish | put_text 0644 /usr/share/fish/vendor_completions.d/ringfence.fish
  for page in $("$ringfence" __man); do
    "$ringfence" __man "$page" >"$work/page"
    put_gzip "$work/page" "/usr/share/man/man${page##*.}/$page.gz"
  done
  for page in install.md cli.md cdi.md threats.md images.md operations/backup.md operations/doctor.md; do
    put_gzip "docs/$page" "/usr/share/doc/ringfence/$page.gz"
  done
  put 0644 README.md /usr/share/doc/ringfence/README.md
  put 0644 deploy/debian/copyright /usr/share/doc/ringfence/copyright
  put 0644 deploy/debian/lintian-overrides /usr/share/lintian/overrides/ringfence
  {
    printf 'ringfence (%s) unstable; urgency=medium\n\n' "$version"
    printf '  * See /usr/share/doc/ringfence/NEWS.md.gz for what changed.\n\n'
    printf ' -- Ringfence maintainers <maintainers@ringfence.dev>  %s\n' \
      "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
  } >"$work/changelog"
  put_gzip "$work/changelog" /usr/share/doc/ringfence/changelog.gz
  put_gzip CHANGELOG.md /usr/share/doc/ringfence/NEWS.md.gz
}

# What the programs are linked with, by the packages that bring it.
depends() {
  mkdir -p "$work/debian"
  printf 'Source: ringfence\n\nPackage: ringfence\nArchitecture: any\n' >"$work/debian/control"
  (cd "$work" && dpkg-shlibdeps -O -xringfence "$root/usr/bin/ringfence" \
    "$root/usr/lib/ringfence/ringfence-jailer" "$root/usr/lib/ringfence/ringfence-worker" \
    "$root/usr/lib/ringfence/ringfence-unpack" "$root/usr/lib/ringfence/ringfence-probe" \
    "$root/usr/lib/ringfence/ringfence-resolve" 2>"$work/shlibdeps.log") | sed -n 's/^shlibs:Depends=//p' ||
    { cat "$work/shlibdeps.log" >&2; return 1; }
}

put_control() {
  local file needed
  needed=$(depends)
  [ -n "$needed" ] || die "dpkg-shlibdeps found nothing that the programs need"
  for file in postinst prerm postrm; do
    install -m 0755 "deploy/debian/$file" "$root/DEBIAN/$file"
  done
  (cd "$root" && find etc -type f | sort | sed 's,^,/,') >"$root/DEBIAN/conffiles"
  (cd "$root" && find . -path ./DEBIAN -prune -o -path ./etc -prune -o -type f -print |
    sed 's,^\./,,' | sort | xargs -d '\n' md5sum) >"$root/DEBIAN/md5sums"
  sed -e "s|@VERSION@|$version|" -e "s|@ARCHITECTURE@|$architecture|" -e "s|@DEPENDS@|$needed|" \
    -e "s|@INSTALLED_SIZE@|$(find "$root" -path "$root/DEBIAN" -prune -o -type f -printf '%s\n' |
      awk '{ kib += int(($1 + 1023) / 1024) } END { print kib + 40 }')|" \
    deploy/debian/control >"$root/DEBIAN/control"
  chmod 0644 "$root"/DEBIAN/{conffiles,md5sums,control}
}

put_programs
put_configuration
put_documents
put_control
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$output"
deb=$output/ringfence_${version}_$architecture.deb
dpkg-deb --root-owner-group --threads-max=1 -Zxz --build "$root" "$deb" >/dev/null
say "$deb"
