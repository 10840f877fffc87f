#!/bin/sh
# Debian: configure, with the old version as the second word when there was one. RPM: 1 for a first installation, 2 for an upgrade.
# A first installation starts nothing: an operator looks at /etc/ebb/ebb.conf before. An upgrade starts a server anew that runs.
set -e
install -d -o ebb -g ebb -m 0750 /var/lib/ebb /var/log/ebb
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	if { [ "$1" = configure ] && [ -n "$2" ]; } || [ "$1" = 2 ]; then
		systemctl try-restart ebb.service || true
	fi
fi
