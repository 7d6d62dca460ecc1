package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
)

// The Debian package has the program and what it is installed with. The RPM package is made from the same
// list; its contents are not looked at, because that needs rpm.
func TestPackages(t *testing.T) {
	dist := need.Variable(t, "KUBEGRACE_DIST", "make dist")
	dpkg := need.Program(t, "dpkg-deb", "dpkg")
	require.Len(t, files(t, dist, "*.x86_64.rpm"), 1)
	packages := files(t, dist, "*_amd64.deb")
	require.Len(t, packages, 1)
	root := t.TempDir()
	run(t, dpkg, "--raw-extract", packages[0], root)

	for installed, source := range map[string]string{
		"usr/lib/systemd/system/kubegrace-node.service": "kubegrace-node.service",
		"etc/kubegrace-node/config.yaml":                "deploy/package/config.yaml",
		"etc/default/kubegrace-node":                    "deploy/package/default",
		"usr/share/doc/kubegrace-node/INSTALL.md":       "INSTALL.md",
		"DEBIAN/postinst":                               "deploy/package/reload.sh",
		"DEBIAN/prerm":                                  "deploy/package/remove.sh",
		"DEBIAN/postrm":                                 "deploy/package/reload.sh",
	} {
		require.Equal(t, read(t, source), read(t, filepath.Join(root, installed)), installed)
	}
	require.Equal(t, "/etc/default/kubegrace-node\n/etc/kubegrace-node/config.yaml\n", read(t, filepath.Join(root, "DEBIAN/conffiles")))
	for _, pattern := range []string{
		"usr/share/man/man1/kubegrace-node.1", "usr/share/man/man1/kubegrace-node-run.1",
		"usr/share/bash-completion/completions/kubegrace-node", "usr/share/zsh/vendor-completions/_kubegrace-node",
		"usr/share/fish/vendor_completions.d/kubegrace-node.fish", "usr/share/doc/kubegrace-node/copyright",
	} {
		require.NotEmpty(t, read(t, filepath.Join(root, pattern)), pattern)
	}
	require.Contains(t, run(t, filepath.Join(root, "usr/bin/kubegrace-node"), "plan", "--help"), "kubegrace-node plan")
	run(t, filepath.Join(root, "DEBIAN/prerm"), "upgrade", "2.0.0") // the agent goes on
}

func files(t *testing.T, folder, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	require.NoError(t, err)
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	require.NoErrorf(t, err, "%s %v: %s", program, args, out)
	return string(out)
}
