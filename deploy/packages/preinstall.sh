#!/bin/sh
# Before the files are there: the user that the server runs as. Debian calls this with install or upgrade, RPM with a number.
set -e
if ! getent group ebb >/dev/null; then
	groupadd --system ebb
fi
if ! getent passwd ebb >/dev/null; then
	useradd --system --gid ebb --home-dir /var/lib/ebb --no-create-home --shell /usr/sbin/nologin --comment "Ebb database" ebb
fi
