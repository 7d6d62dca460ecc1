package apiserverprocess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// noticeAfter is how long a build may take in silence. A message then says why the test is slow.
const noticeAfter = 3 * time.Second

// prebuiltVariable is the environment variable with the path of a prebuilt program, which is run instead of a new build.
const prebuiltVariable = "KUBEGRACE_APISERVER"

// build builds the API server's program into the repository's .cache and returns its path. If there is a prebuilt
// program, it builds nothing and returns the path of the prebuilt one.
func build(ctx context.Context) (string, error) {
	if path := os.Getenv(prebuiltVariable); path != "" {
		return path, nil
	}
	root, err := repository()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, ".cache", "apiserver")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if err := withBuildLock(ctx, func() error {
		_, err := goCommand(ctx, "build", "-C", filepath.Join(root, "internal", "apiserver"), "-buildvcs=false", "-mod=readonly", "-o", path, ".")
		return err
	}); err != nil {
		return "", fmt.Errorf("failed to build the test API server: %w", err)
	}
	return path, nil
}

// withBuildLock calls build while no other process of the machine builds the program, because several builds at once
// would each take minutes. It prints a message if the wait or the build takes long. The lock file is in Go's build
// cache, which all checkouts share.
func withBuildLock(ctx context.Context, build func() error) (err error) {
	notice := time.AfterFunc(noticeAfter, func() {
		fmt.Fprintln(os.Stderr, "Building the test API server (internal/apiserver), or waiting for another test that builds it. The first build takes some minutes.")
	})
	defer notice.Stop()
	cache, err := goCommand(ctx, "env", "GOCACHE")
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(cache, "kubegrace-apiserver.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }() // closing the file releases the lock
	if err := lock(file); err != nil {
		return fmt.Errorf("failed to lock %s: %w", file.Name(), err)
	}
	return build()
}

// goCommand runs the go command and returns its standard output. It ignores a go.work file, which may lack the API
// server's module.
func goCommand(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}
