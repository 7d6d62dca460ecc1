#!/bin/sh
# systemd reads the unit. Where it does not run, as in a chroot, it will when it starts.
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
