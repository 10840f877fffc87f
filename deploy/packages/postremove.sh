#!/bin/sh
# The data and the log stay, and so does the user whose they are. Debian's purge takes the log and the configuration away; data is
# removed by hand.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
	rm -rf /var/log/ebb
	rmdir /etc/ebb 2>/dev/null || true
	if [ -d /var/lib/ebb ] && ! rmdir /var/lib/ebb 2>/dev/null; then
		echo "ebb: the data in /var/lib/ebb stays; remove it by hand" >&2
	fi
fi
