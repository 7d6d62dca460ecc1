package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
)

// The Debian package must have the unit, the configuration and the scripts as they are in this folder, the man
// pages and completions, and a program that runs.
func TestDebianPackage(t *testing.T) {
	dist := need.Variable(t, "KUBEGRACE_DIST", "make dist")
	dpkg := need.Program(t, "dpkg-deb", "dpkg")
	packages := files(t, dist, "*_amd64.deb")
	require.Len(t, packages, 1)
	root := t.TempDir()
	run(t, dpkg, "--raw-extract", packages[0], root) // with the scripts, in DEBIAN

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
	for _, file := range []string{
		"usr/share/man/man1/kubegrace-node.1", "usr/share/man/man1/kubegrace-node-run.1",
		"usr/share/bash-completion/completions/kubegrace-node", "usr/share/zsh/vendor-completions/_kubegrace-node",
		"usr/share/fish/vendor_completions.d/kubegrace-node.fish", "usr/share/doc/kubegrace-node/copyright",
	} {
		require.NotEmpty(t, read(t, filepath.Join(root, file)), file)
	}
	require.Contains(t, run(t, filepath.Join(root, "usr/bin/kubegrace-node"), "plan", "--help"), "kubegrace-node plan")
	run(t, filepath.Join(root, "DEBIAN/prerm"), "upgrade", "2.0.0") // must do nothing: the agent keeps running
}

// The RPM package must have the same files as the Debian package, but zsh's completions in another folder. It must also run
// the scripts of deploy/package, require systemd, and not overwrite the configuration files in an upgrade.
func TestRPMPackage(t *testing.T) {
	dist := need.Variable(t, "KUBEGRACE_DIST", "make dist")
	dpkg, rpm := need.Program(t, "dpkg-deb", "dpkg"), need.Program(t, "rpm", "rpm")
	packages, packagesOfDebian := files(t, dist, "*.x86_64.rpm"), files(t, dist, "*_amd64.deb")
	require.Len(t, packages, 1)
	require.Len(t, packagesOfDebian, 1)
	root := t.TempDir()
	run(t, dpkg, "--extract", packagesOfDebian[0], root)
	query := func(format string) string {
		return run(t, rpm, "--query", "--package", "--queryformat", format, packages[0])
	}
	count := 0
	for line := range strings.Lines(query(`[%{FILEMODES:perms} %{FILESIZES} %{FILENAMES}\n]`)) {
		var mode, file string
		var size int64
		_, err := fmt.Sscan(line, &mode, &size, &file)
		require.NoError(t, err)
		info, err := os.Stat(filepath.Join(root, strings.Replace(file, "zsh/site-functions", "zsh/vendor-completions", 1)))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().String(), file)
		if !info.IsDir() {
			require.Equal(t, info.Size(), size, file)
			count++
		}
	}
	require.Equal(t, strings.Count(run(t, "find", root, "-type", "f"), "\n"), count)
	for tag, source := range map[string]string{"POSTIN": "reload.sh", "PREUN": "remove.sh", "POSTUN": "reload.sh"} {
		require.Equal(t, read(t, "deploy/package/"+source), query("%{"+tag+"}"), tag)
	}
	require.Equal(t, "systemd\n", run(t, rpm, "--query", "--package", "--requires", packages[0]))
	flags := query(`[%{FILEFLAGS:fflags} %{FILENAMES}\n]`)
	require.Contains(t, flags, "cn /etc/default/kubegrace-node\n", "cn is config(noreplace): an upgrade does not overwrite the file")
	require.Contains(t, flags, "cn /etc/kubegrace-node/config.yaml\n")
}

// files returns the paths in a folder that match a pattern.
func files(t *testing.T, folder, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(folder, pattern))
	require.NoError(t, err)
	return found
}

// read returns the content of a file.
func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// run runs a program, which must succeed, and returns its output.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	require.NoErrorf(t, err, "%s %v: %s", program, args, out)
	return string(out)
}
