//go:build e2e

package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
	"github.com/kubegrace/kubegrace/internal/need"
)

// On a fresh machine the Debian package is installed, enabled, used and removed, as INSTALL.md says. A reboot must
// drain the pods, and the next agent must have the report. The removal of the package must leave only its two
// configuration files, and a purge must remove these files too.
func TestThePackageOnAFreshMachine(t *testing.T) {
	eachPlatform(t, func(t *testing.T, on platform) {
		packages, err := filepath.Glob(filepath.Join(need.Variable(t, "KUBEGRACE_DIST", "make dist"), "*_amd64.deb"))
		require.NoError(t, err)
		require.Len(t, packages, 1)
		server := on.containerd.Start(t, images()...)
		m := machine.New(t, on.debian)
		m.WriteFile(t, "/root/kubegrace-node.deb", 0o644, readFile(t, packages[0]))
		m.WriteFile(t, consoleFile, 0o644, []byte(consoleText))
		m.Bind(server.Socket(), "/run/containerd/containerd.sock")
		m.Enable(t, "booted.service", []byte("[Unit]\nAfter=dbus.service systemd-logind.service\n[Service]\nType=exec\nExecStart=sleep infinity\n"))
		containers := runPods(t, server, testdataPods(t))
		m.Boot(t)
		m.AwaitActive(t, "booted.service")

		// The package is installed, which starts nothing, and the unit is enabled.
		m.Run(t, "apt-get", "install", "--yes", "/root/kubegrace-node.deb")
		require.Equal(t, "inactive", strings.TrimSpace(m.Run(t, "sh", "-c", "systemctl is-active kubegrace-node || true")))
		m.Run(t, "systemctl", "enable", "--now", "kubegrace-node")
		m.AwaitActive(t, agentUnit)
		require.True(t, delaysShutdowns(t, m))
		require.Contains(t, m.Run(t, "sh", "-c", "/usr/bin/kubegrace-node plan || test $? = 2"), "default/nginx")

		// The machine is rebooted.
		m.Run(t, "systemctl", "reboot")
		m.AwaitReboot(t)
		awaitExits(t, server, containers)
		m.Boot(t)
		m.AwaitActive(t, agentUnit)
		require.Contains(t, m.Run(t, "/usr/bin/kubegrace-node", "report"), "stopped in time")

		// The package is removed and purged.
		m.Run(t, "apt-get", "remove", "--yes", "kubegrace-node")
		// remainingFiles lists the files and folders with kubegrace in their names, except those of this test, of logs
		// and of package caches.
		remainingFiles := func() string {
			return m.Run(t, "sh", "-c", "find / -xdev -path /proc -prune -o -name '*kubegrace*' -print | grep -v -e ^/root/ -e console.conf -e service.d -e /var/log/ -e /var/cache/ -e /var/lib/dpkg/ || true")
		}
		require.Equal(t, "/etc/default/kubegrace-node\n/etc/kubegrace-node", remainingFiles())
		m.Run(t, "apt-get", "purge", "--yes", "kubegrace-node")
		require.Empty(t, remainingFiles())
	})
}
