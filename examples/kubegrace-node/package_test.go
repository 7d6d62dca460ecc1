package main_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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
	for _, pattern := range []string{
		"usr/share/man/man1/kubegrace-node.1", "usr/share/man/man1/kubegrace-node-run.1",
		"usr/share/bash-completion/completions/kubegrace-node", "usr/share/zsh/vendor-completions/_kubegrace-node",
		"usr/share/fish/vendor_completions.d/kubegrace-node.fish", "usr/share/doc/kubegrace-node/copyright",
	} {
		require.NotEmpty(t, read(t, filepath.Join(root, pattern)), pattern)
	}
	require.Contains(t, run(t, filepath.Join(root, "usr/bin/kubegrace-node"), "plan", "--help"), "kubegrace-node plan")
	run(t, filepath.Join(root, "DEBIAN/prerm"), "upgrade", "2.0.0") // must do nothing: the agent keeps running
}

// An installed RPM package must have the same files, modes, scripts and configuration files as the Debian
// package. RPM installs it into an empty folder, so its dependencies and scripts are left out.
func TestRPMPackage(t *testing.T) {
	dist := need.Variable(t, "KUBEGRACE_DIST", "make dist")
	dpkg, rpm := need.Program(t, "dpkg-deb", "dpkg"), need.Program(t, "rpm", "rpm")
	need.Root(t)
	packages, packagesOfDebian := files(t, dist, "*.x86_64.rpm"), files(t, dist, "*_amd64.deb")
	require.Len(t, packages, 1)
	require.Len(t, packagesOfDebian, 1)
	root, rootOfDebian := t.TempDir(), t.TempDir()
	run(t, rpm, "--install", "--root", root, "--dbpath", "/rpmdb", "--nodeps", "--noscripts", packages[0])
	run(t, dpkg, "--extract", packagesOfDebian[0], rootOfDebian)
	require.NoError(t, os.RemoveAll(filepath.Join(root, "rpmdb")))
	completion := filepath.Join(rootOfDebian, "usr/share/zsh") // Fedora's folder for completions that are not part of zsh
	require.NoError(t, os.Rename(completion+"/vendor-completions", completion+"/site-functions"))
	require.Equal(t, tree(t, rootOfDebian), tree(t, root))

	query := func(format string) string {
		return run(t, rpm, "--query", "--package", "--queryformat", format, packages[0])
	}
	for tag, source := range map[string]string{"POSTIN": "reload.sh", "PREUN": "remove.sh", "POSTUN": "reload.sh"} {
		require.Equal(t, read(t, "deploy/package/"+source), query("%{"+tag+"}"), tag)
	}
	require.Equal(t, "systemd\n", run(t, rpm, "--query", "--package", "--requires", packages[0]))
	flags := query(`[%{FILEFLAGS:fflags} %{FILENAMES}\n]`)
	require.Contains(t, flags, "cn /etc/default/kubegrace-node\n", "cn is config(noreplace): an upgrade does not overwrite the file")
	require.Contains(t, flags, "cn /etc/kubegrace-node/config.yaml\n")
}

// tree returns the mode of each file and folder below root, by path, and the hash of each file's content.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		if found[path] = info.Mode().String(); !entry.IsDir() {
			found[path] += fmt.Sprintf(" %x", sha256.Sum256([]byte(read(t, filepath.Join(root, path)))))
		}
		return nil
	}))
	delete(found, ".")
	return found
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
