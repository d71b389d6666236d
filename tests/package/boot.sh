#!/usr/bin/env bash
# Boots a Debian root folder with systemd as process 1, in namespaces of its own: its processes,
# mounts, network and cgroups are not the machine's. Ends when systemd ends, and takes all of it along.
#   tests/package/boot.sh BASE UPPER NAME     what the boot changes goes to UPPER, BASE stays as it is
set -euo pipefail
base=$(realpath "$1") upper=$(realpath "$2") name=$3

# A group of its own in every hierarchy, which the new cgroup namespace then has as its root.
groups=()
while read -r _ _ _ _ point rest; do
  case "$rest" in
    *" - cgroup "* | *" - cgroup2 "*) ;;
    *) continue ;;
  esac
  group=$point/$name
  mkdir -p "$group"
  groups+=("$group")
  for file in cpuset.cpus cpuset.mems; do  # a new group of v1 has none, and takes no process then
    if [ -e "$group/$file" ] && [ -z "$(cat "$group/$file")" ]; then
      cat "$point/$file" >"$group/$file"
    fi
  done
done </proc/self/mountinfo

leave() {
  local group tries
  for group in "${groups[@]}"; do
    echo $$ >"${group%/*}/cgroup.procs" 2>/dev/null || true
    for tries in $(seq 50); do
      find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
      [ -d "$group" ] || break
      sleep 0.1
    done
  done
}
trap leave EXIT
for group in "${groups[@]}"; do
  echo $$ >"$group/cgroup.procs"
done

export base upper name
unshare --cgroup --mount --pid --uts --ipc --net --fork --kill-child=KILL --propagation private \
  bash -euo pipefail -c '
    root=$upper/root
    mkdir -p "$root" "$upper/changes" "$upper/work"
    mount -t overlay -o "lowerdir=$base,upperdir=$upper/changes,workdir=$upper/work" overlay "$root"
    mount -t proc proc "$root/proc"
    mount -t sysfs -o ro sysfs "$root/sys"
    mount -t tmpfs -o mode=755 tmpfs "$root/run"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
    mount -t tmpfs -o mode=755 tmpfs "$root/dev"
    # The same cgroup hierarchies as outside, each seen from the group above.
    grep -E " - cgroup2? " /proc/self/mountinfo | while read -r _ _ _ _ point rest; do
      if [ "$point" != /sys/fs/cgroup ] && ! mountpoint -q "$root/sys/fs/cgroup"; then
        mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
      fi
      mkdir -p "$root$point"
      read -r kind _ options <<<"${rest##* - }"
      if [ "$kind" = cgroup2 ]; then
        mount -t cgroup2 cgroup2 "$root$point"
      else
        mount -t cgroup -o "${options#rw,}" cgroup "$root$point"
      fi
    done
    for device in null zero full random urandom tty; do
      touch "$root/dev/$device"
      mount --bind "/dev/$device" "$root/dev/$device"
    done
    mkdir "$root/dev/pts" "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
    ln -s pts/ptmx "$root/dev/ptmx"
    ln -s /proc/self/fd "$root/dev/fd"
    hostname "$name"
    mkdir -p "$root/.outside"
    cd "$root"
    pivot_root . .outside
    umount -l /.outside
    exec env -i container=ringfence-test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
      /lib/systemd/systemd --log-target=console --log-level=warning --show-status=0
  '
