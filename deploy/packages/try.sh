#!/usr/bin/env bash
# Tries the .deb of this machine's architecture with dpkg: installs it, starts the server by its unit's command, upgrades, removes and purges.
# For a machine that may be changed: as root, with no ebb on it. DIST has the packages of two versions: OLD and NEW.
set -euo pipefail
old=${OLD:?the version to install first} new=${NEW:?the version to upgrade to} dist=${DIST:-dist-packages}
arch=$(dpkg --print-architecture)
sockets=$(mktemp -d)
trap 'rm -rf "$sockets"' EXIT
say() { echo "== $*"; }
fail() { echo "try.sh: $*" >&2; exit 1; }
start() { # as the unit does
  install -d -o ebb -g ebb "$sockets"
  setpriv --reuid ebb --regid ebb --init-groups /usr/bin/ebb serve --config /etc/ebb/ebb.conf --port 27997 --consolePort 0 --unixSocketPrefix "$sockets" &
  server=$!
  for _ in $(seq 100); do ebb ping --uri mongodb://127.0.0.1:27997 --timeout 1s >/dev/null 2>&1 && return; sleep 0.1; done
  fail "the server is not ready: $(tail -3 /var/log/ebb/ebb.log)"
}
stop() { kill -TERM "$server"; wait "$server" || true; }

! dpkg -s ebb >/dev/null 2>&1 || fail "ebb is installed already"
say install "$old"
dpkg -i "$dist/ebb_${old}_$arch.deb"
ebb version
getent passwd ebb
[ "$(stat -c %U:%a /var/lib/ebb)" = ebb:750 ] || fail "/var/lib/ebb is $(stat -c %U:%a /var/lib/ebb)"
man -w ebb-serve >/dev/null && test -s /usr/share/bash-completion/completions/ebb
! command -v systemd-analyze >/dev/null || systemd-analyze verify /usr/lib/systemd/system/ebb.service
! command -v logrotate >/dev/null || logrotate -d /etc/logrotate.d/ebb 2>&1 | grep -q 'rotating pattern'
say start
start
stop
[ -n "$(ls -A /var/lib/ebb)" ] || fail "the server has left no data"

say change the settings, and upgrade to "$new"
echo '# mine' >>/etc/ebb/ebb.conf
dpkg --force-confdef --force-confold -i "$dist/ebb_${new}_$arch.deb"
[ "$(dpkg-query -W -f '${Version}' ebb)" = "$new" ] || fail "the version is $(dpkg-query -W -f '${Version}' ebb)"
grep -q '^# mine' /etc/ebb/ebb.conf || fail "the upgrade has taken the settings away"
start
stop

say remove
dpkg -r ebb
[ ! -e /usr/bin/ebb ] || fail "ebb is still there"
[ -n "$(ls -A /var/lib/ebb)" ] || fail "removing it took the data"
say purge
dpkg -P ebb
[ ! -e /etc/ebb ] && [ ! -e /var/log/ebb ] || fail "purging it left settings or log"
[ -n "$(ls -A /var/lib/ebb)" ] || fail "purging it took the data"
echo "all is as it should be"
