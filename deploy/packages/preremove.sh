#!/bin/sh
# Debian: remove, or upgrade. RPM: 0 when the package goes for good. An upgrade leaves the server running until the new one is there.
set -e
if [ "$1" = remove ] || [ "$1" = 0 ]; then
	if [ -d /run/systemd/system ]; then
		systemctl --no-reload disable --now ebb.service || true
	fi
fi
