#!/bin/sh
# dpkg says "remove" and rpm says 0 when the package goes. At an upgrade the agent keeps running.
set -e
case "$1" in remove | 0) ;; *) exit 0 ;; esac
[ -d /run/systemd/system ] || exit 0
systemctl disable --now kubegrace-node
/usr/bin/kubegrace-node uninstall --remove-state
