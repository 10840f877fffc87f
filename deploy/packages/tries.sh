#!/usr/bin/env bash
# Builds the .deb of this machine's architecture twice, as of two versions, and tries both without changing the machine: as root.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
cd "$here/../.."
arch=$(dpkg --print-architecture)
export DIST=$PWD/dist-packages/tries
for VERSION in 0.0.1 0.0.2; do
  VERSION=$VERSION PLATFORMS=linux/$arch ARCHS=$arch KINDS=deb deploy/packages/build.sh
done
export OLD=0.0.1 NEW=0.0.2
"$here/apart.sh" "$here/try.sh"
if command -v systemd-nspawn >/dev/null; then
  BOOT=yes "$here/apart.sh" "$here/boot.sh"
else
  echo "tries.sh: without systemd-nspawn (Debian's systemd-container) it was not tried under systemd" >&2
fi
