package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const goMod = `module github.com/kubegrace/kubegrace

go 1.25.0

require k8s.io/api v0.34.0

replace github.com/kubegrace/kubegrace => ../../
`

// TestMain puts the fake go command into the path of all tests.
func TestMain(m *testing.M) {
	bin, err := os.MkdirTemp("", "fakego-")
	if err != nil {
		log.Panic(err)
	}
	defer func() { _ = os.RemoveAll(bin) }()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(bin, "go"), "./testdata/fakego").CombinedOutput(); err != nil {
		log.Panicf("%v: %s", err, out)
	}
	if err := os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH")); err != nil {
		log.Panic(err)
	}
	m.Run()
}

// fakeRepository makes a repository. It returns its folder, and the folder in which the program
// makes its temporary folder.
func fakeRepository(t *testing.T) (root, temp string) {
	t.Helper()
	root, temp = t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	for _, name := range testedModules() {
		require.NoError(t, write(filepath.Join(root, name), map[string][]byte{"go.mod": []byte(goMod)}))
	}
	require.NoError(t, exec.CommandContext(t.Context(), "git", "-C", root, "init", "-q").Run())
	return root, temp
}

// runCompat runs the program and returns what it prints, without the times of its table.
func runCompat(t *testing.T, root string, args ...string) (table, progress string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err = compat(t.Context(), append([]string{"--root", root, "--oldest-go", "go1.25.14"}, args...), &stdout, &stderr)
	return regexp.MustCompile(`[^|]*\|\n`).ReplaceAllString(stdout.String(), "\n"), stderr.String(), err
}

func TestAllMinors(t *testing.T) {
	root, temp := fakeRepository(t)
	table, progress, err := runCompat(t, root)
	require.NoError(t, err)
	require.Equal(t, `| Kubernetes | Go        | what                                | result |
|---         |---        |---                                  |---     |
| v0.37.1    | go1.99.0  | vet, all tests                      | ok     |
| v0.36.1    | go1.99.0  | vet, all tests                      | ok     |
| v0.35.1    | go1.25.14 | vet, all tests                      | ok     |
| v0.34.1    | go1.25.14 | vet, all tests but virtualkubelet's | ok     |
| v0.33.1    | go1.25.14 | tests of internal/fork              | ok     |
| v0.32.1    | go1.25.14 | tests of internal/fork              | ok     |
`, table)
	require.Contains(t, progress, "Kubernetes v0.38 is out, and is not tested")
	require.Contains(t, progress, "v0.37.1: testing module internal/apiservertest ...")
	require.Contains(t, progress, "v0.35.1: testing module lifecycle/virtualkubelet ...")
	require.NotContains(t, progress, "v0.34.1: testing module lifecycle/virtualkubelet ...")
	requireEmpty(t, temp)
}

func TestARowThatFails(t *testing.T) {
	for step, test := range map[string]struct{ fail, raised, want string }{
		"no such version": {"v0.36.1 mod tidy", "", "v0.36.1: FAILED: module .: go mod tidy: exit status 1\nthis is why: mod tidy\n"},
		"vet":             {"v0.36.1 vet", "", "v0.36.1: FAILED: module .: go vet ./...: exit status 1\nthis is why: vet ./...\n"},
		"a test":          {"v0.36.1 test", "", "v0.36.1: FAILED: module .: go test ./...: exit status 1\nthis is why: test ./...\n"},
		"the fork":        {"v0.32.1 test", "", "v0.32.1: FAILED: go test ./...: exit status 1\nthis is why: test ./...\n"},
		"raised":          {"", "v0.36.9", "v0.36.1: FAILED: module .: v0.36.1 is not what is built with: k8s.io/api v0.36.9\n"},
		"no toolchain":    {" env GOVERSION", "", "v0.32.1: FAILED: go env GOVERSION: exit status 1\nthis is why: env GOVERSION\n"},
	} {
		t.Run(step, func(t *testing.T) {
			root, temp := fakeRepository(t)
			t.Setenv("FAKEGO_FAIL", test.fail)
			t.Setenv("FAKEGO_RAISED", test.raised)
			table, progress, err := runCompat(t, root, "--only", "oldest,v0.36")
			require.ErrorContains(t, err, "of 2 rows failed")
			require.Contains(t, progress, test.want)
			require.NotContains(t, progress, "example.com", "the packages that have passed")
			require.Contains(t, table, "FAILED")
			requireEmpty(t, temp)
		})
	}
}

func TestOneRowThatFailsDoesNotStopTheOthers(t *testing.T) {
	root, _ := fakeRepository(t)
	t.Setenv("FAKEGO_FAIL", "v0.36.1 test")
	table, _, err := runCompat(t, root, "--only", "floor,v0.36")
	require.EqualError(t, err, "1 of 2 rows failed")
	require.Contains(t, table, "| v0.36.1    | go1.99.0  | vet, all tests                      | FAILED |")
	require.Contains(t, table, "| v0.34.1    | go1.25.14 | vet, all tests but virtualkubelet's | ok     |")
}

func TestNothingCanBeTested(t *testing.T) {
	root, temp := fakeRepository(t)
	t.Run("no network", func(t *testing.T) {
		t.Setenv("FAKEGO_FAIL", "v0.34.0 list -m")
		table, progress, err := runCompat(t, root)
		require.EqualError(t, err, "failed to list the releases of Kubernetes: go list -m -versions -json=Path,Versions k8s.io/api: exit status 1")
		require.Contains(t, progress, "this is why")
		require.Empty(t, table)
	})
	t.Run("no repository", func(t *testing.T) {
		_, _, err := runCompat(t, filepath.Join(root, "gone"))
		require.ErrorContains(t, err, "failed to list the files of "+root)
	})
	t.Run("no git repository", func(t *testing.T) {
		_, _, err := runCompat(t, t.TempDir())
		require.ErrorContains(t, err, "not a git repository")
	})
	t.Run("no go.mod", func(t *testing.T) {
		require.NoError(t, os.Remove(filepath.Join(root, "internal/apiservertest/go.mod")))
		_, _, err := runCompat(t, root)
		require.ErrorContains(t, err, "module internal/apiservertest: ")
		require.ErrorContains(t, err, "go.mod: no such file")
	})
	requireEmpty(t, temp)
}

func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"--oldest-go: must be set":    {"--oldest-go", ""},
		`unexpected argument "v0.34"`: {"v0.34"},
		`--only: "v0.31" is none of oldest, floor, newest and v0.32 to v0.37`:        {"--only", "floor,v0.31"},
		"flag provided but not defined: -all":                                        {"--all"},
		flag.ErrHelp.Error():                                                         {"--help"},
		`--only: "" is none of oldest, floor, newest and v0.32 to v0.37`:             {"--only", "floor,"},
		`--only: "newest floor" is none of oldest, floor, newest and v0.32 to v0.37`: {"--only", "newest floor"},
	} {
		_, _, err := runCompat(t, ".", args...)
		require.EqualError(t, err, want)
	}
}

func TestAnInterruptEndsWhatRuns(t *testing.T) {
	root, temp := fakeRepository(t)
	socket := filepath.Join(t.TempDir(), "s")
	t.Setenv("FAKEGO_HANG", socket)
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "unix", socket)
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()

	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var stdout, stderr bytes.Buffer
	ended := make(chan error)
	go func() {
		ended <- compat(ctx, []string{"--root", root, "--oldest-go", "go1.25.14", "--only", "oldest,floor"}, &stdout, &stderr)
	}()
	child, err := listener.Accept() // the child of go test
	require.NoError(t, err)
	defer func() { require.NoError(t, child.Close()) }()
	require.NoError(t, child.SetReadDeadline(time.Now().Add(time.Minute)))
	interrupt()

	require.EqualError(t, <-ended, "2 of 2 rows are missing: context canceled")
	_, err = child.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the child has ended")
	require.Empty(t, stdout.String())
	requireEmpty(t, temp)
}

// requireEmpty checks that nothing is left in a folder.
func requireEmpty(t *testing.T, folder string) {
	t.Helper()
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
}
