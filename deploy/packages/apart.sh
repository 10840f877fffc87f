#!/usr/bin/env bash
# Runs a command as root in a view of this machine of its own: what it installs, changes and removes is gone with it. It needs Linux with overlayfs, and root.
set -euo pipefail
[ "$(id -u)" = 0 ] || { echo "apart.sh: this needs root" >&2; exit 1; }
if [ "${APART:-}" != yes ]; then
  APART=yes exec unshare --mount --propagation private "$0" "$@"
fi
base=$(mktemp -d)
mount -t tmpfs tmpfs "$base"
mkdir "$base/up" "$base/work" "$base/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$base/up,workdir=$base/work" "$base/root"
[ -z "${BOOT:-}" ] || exec "$@" "$base/root"
mount --rbind /proc "$base/root/proc"
mount --rbind /dev "$base/root/dev"
exec chroot "$base/root" "$@"
