#!/usr/bin/env bash
# Tries the .deb under a systemd that boots in a folder, which apart.sh makes: the server starts, is not root, comes again when it was killed, takes a new log, is upgraded and removed.
# OLD, NEW and DIST are try.sh's. It needs systemd-nspawn.
set -euo pipefail
root=${1:?the folder to boot in}
arch=$(dpkg --print-architecture)
mkdir -p "$root/var/tmp/try"
cp "${DIST:?}/ebb_${OLD:?}_$arch.deb" "$root/var/tmp/try/old.deb"
cp "$DIST/ebb_${NEW:?}_$arch.deb" "$root/var/tmp/try/new.deb"
cat >"$root/var/tmp/try/try.sh" <<'TRY'
set -ex
ready() { for _ in $(seq 100); do ebb ping --timeout 1s && return; sleep 0.2; done; journalctl -u ebb | tail; return 1; }
pid() { systemctl show -p MainPID --value ebb; }
dpkg -i /var/tmp/try/old.deb
! systemctl is-active ebb
systemctl enable --now ebb
ready
[ "$(stat -c %U "/proc/$(pid)")" = ebb ]
was=$(pid)
kill -9 "$was"
for _ in $(seq 100); do [ "$(systemctl show -p NRestarts --value ebb)" = 1 ] && break; sleep 0.2; done
ready
was=$(pid)
mv /var/log/ebb/ebb.log /var/log/ebb/ebb.log.1
systemctl reload ebb
for _ in $(seq 100); do [ -e /var/log/ebb/ebb.log ] && break; sleep 0.2; done
ready # which is a line in the new log
[ -s /var/log/ebb/ebb.log ]
dpkg -i /var/tmp/try/new.deb
[ "$(pid)" != "$was" ]
ready
dpkg -r ebb
! systemctl is-active ebb
[ -n "$(ls -A /var/lib/ebb/store)" ]
TRY
cat >"$root/etc/systemd/system/try.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/bash -c '/bin/bash /var/tmp/try/try.sh >/var/tmp/try/out 2>&1; echo $? >/var/tmp/try/status; systemctl --no-block poweroff'
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -sf ../try.service "$root/etc/systemd/system/multi-user.target.wants/try.service"
ln -sf /lib/systemd/system/multi-user.target "$root/etc/systemd/system/default.target"
timeout -k 5 300 systemd-nspawn -q -D "$root" --private-network --register=no --keep-unit /lib/systemd/systemd >"$root/var/tmp/try/boot" 2>&1 || true
cat "$root/var/tmp/try/out" || tail -20 "$root/var/tmp/try/boot"
[ "$(cat "$root/var/tmp/try/status")" = 0 ] || { echo "boot.sh: it failed" >&2; exit 1; }
echo "under systemd all is as it should be"
