package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	modversion "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// folderProxy is a module proxy in a folder that has versions of example.org/m.
type folderProxy struct{ folder string }

// newProxy makes an empty proxy, which the go command then uses.
func newProxy(t *testing.T) folderProxy {
	t.Helper()
	p := folderProxy{t.TempDir()}
	t.Setenv("GOPROXY", "file://"+p.folder)
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOFLAGS", "-modcacherw")
	t.Setenv("GOMODCACHE", t.TempDir())
	return p
}

// add lists a version that needs the given Go. Only if complete is true, the version can be
// downloaded.
func (p folderProxy) add(t *testing.T, v, goNeeded string, complete bool) {
	t.Helper()
	dir := filepath.Join(p.folder, "example.org/m/@v")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	list, err := os.OpenFile(filepath.Join(dir, "list"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = fmt.Fprintln(list, v)
	require.NoError(t, err)
	require.NoError(t, list.Close())
	source, goMod := t.TempDir(), "module example.org/m\n\ngo "+goNeeded+"\n"
	write(t, filepath.Join(source, "go.mod"), goMod)
	write(t, filepath.Join(dir, v+".mod"), goMod)
	write(t, filepath.Join(dir, v+".info"), fmt.Sprintf(`{"Version": %q, "Time": "2026-01-01T00:00:00Z"}`, v))
	if !complete {
		return
	}
	packed, err := os.Create(filepath.Join(dir, v+".zip"))
	require.NoError(t, err)
	require.NoError(t, zip.CreateFromDir(packed, modversion.Version{Path: "example.org/m", Version: v}, source))
	require.NoError(t, packed.Close())
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// runPatches runs the program for a module with these lines in its go.mod, and returns what it prints.
func runPatches(t *testing.T, lines string) (string, error) {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "mine"), 0o700))
	write(t, filepath.Join(root, "mine/go.mod"), "module example.org/mine\n\ngo 1.25.0\n\n"+lines+"\n")
	var out bytes.Buffer
	err := patches(t.Context(), []string{"--root", root, "mine"}, &out, &out)
	return out.String(), err
}

func TestOnlyNewerPatchReleasesCount(t *testing.T) {
	p := newProxy(t)
	for _, v := range []string{"v1.1.9", "v1.2.0", "v1.2.9", "v1.2.10", "v1.2.11-rc.1", "v1.3.0"} {
		p.add(t, v, "1.20", true)
	}
	for current, newest := range map[string]string{
		"v1.2.0": "v1.2.10", "v1.2.10": "", "v1.3.0": "", "v1.2.11-rc.1": "", "v1.2.1-0.20260101000000-0123456789ab": "v1.2.10", "v0.0.0-20260101000000-0123456789ab": "", "v1.1.9": "",
	} {
		printed, err := runPatches(t, "require example.org/m "+current)
		if newest == "" {
			require.NoError(t, err, current)
			require.Contains(t, printed, "1 direct dependencies of 1 modules were compared, none is behind")
			continue
		}
		require.EqualError(t, err, "1 of 1 direct dependencies are behind", "%s: %s", current, printed)
		require.Contains(t, printed, "module mine: example.org/m@"+current+": is behind "+newest+": cd mine && go get example.org/m@"+newest+" && go mod tidy\n")
	}
}

// Releases that cannot be used are named. The newest usable one counts.
func TestReleasesThatCannotBeTaken(t *testing.T) {
	p := newProxy(t)
	p.add(t, "v1.2.0", "1.20", true)
	p.add(t, "v1.2.2", "1.26.0", true)
	p.add(t, "v1.2.3", "1.20", false)
	printed, err := runPatches(t, "require example.org/m v1.2.0")
	require.NoError(t, err)
	require.Contains(t, printed, "v1.2.3 cannot be had: ")
	require.Contains(t, printed, "v1.2.2 needs Go 1.26.0, and the module has go 1.25.0")
	p.add(t, "v1.2.1", "1.25.0", true)
	_, err = runPatches(t, "require example.org/m v1.2.0")
	require.EqualError(t, err, "1 of 1 direct dependencies are behind")
}

func TestIndirectAndReplacedOnesAreLeftOut(t *testing.T) {
	p := newProxy(t)
	p.add(t, "v1.2.0", "1.20", true)
	p.add(t, "v1.2.1", "1.20", true)
	for lines, behind := range map[string]bool{
		"require example.org/m v1.2.0 // indirect":                                false,
		"require example.org/m v1.2.0\n\nreplace example.org/m => ../m":           false,
		"tool example.org/m/cmd/tool\n\nrequire example.org/m v1.2.0 // indirect": true,
	} {
		_, err := runPatches(t, lines)
		require.Equal(t, behind, err != nil, lines)
	}
}

// Without a proxy nothing is compared. The output says so, so that nobody takes it for a success.
func TestAProxyThatCannotBeReached(t *testing.T) {
	newProxy(t)
	t.Setenv("GOPROXY", "http://127.0.0.1:1")
	printed, err := runPatches(t, "require example.org/m v1.2.0")
	require.NoError(t, err)
	require.Contains(t, printed, "*** patches SKIPPED: nothing was compared. ***\nThe module proxy cannot be reached: ")
	require.Contains(t, printed, "connection refused")
}

// If the proxy lacks one module, the others are compared all the same.
func TestAModuleThatTheProxyDoesNotHave(t *testing.T) {
	p := newProxy(t)
	p.add(t, "v1.2.0", "1.20", true)
	printed, err := runPatches(t, "require example.org/m v1.2.0\n\nrequire example.org/private v1.0.0")
	require.NoError(t, err)
	require.Contains(t, printed, "module mine: example.org/private@v1.0.0: not all of its versions can be had: ")
	require.NotContains(t, printed, "SKIPPED")
}

func TestNoModules(t *testing.T) {
	var out bytes.Buffer
	require.EqualError(t, patches(t.Context(), nil, &out, &out), "no modules are named")
	require.ErrorContains(t, patches(t.Context(), []string{"absent"}, &out, &out), "module absent: ")
}
