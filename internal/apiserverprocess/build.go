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
	"sync"
	"time"
)

// noticeAfter is how long a build runs before a notice is printed.
const noticeAfter = 3 * time.Second

// program is the API server's program. A test binary builds it at most once.
type program struct {
	mu   sync.Mutex // held while it is built
	path string     // "": not built yet
}

// prebuiltVariable is the environment variable with the path of a program that was built
// before.
const prebuiltVariable = "KUBEGRACE_APISERVER"

// build returns the path of the program. A failed build is repeated by the next call.
func (p *program) build(ctx context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.path != "" {
		return p.path, nil
	}
	if p.path = os.Getenv(prebuiltVariable); p.path != "" {
		return p.path, nil
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
		return "", fmt.Errorf("failed to build the API server of the tests: %w", err)
	}
	p.path = path
	return path, nil
}

// withBuildLock calls build while no other process on the machine does, and prints a
// notice if that takes long. The lock file is in the build cache, because all checkouts
// share that cache.
func withBuildLock(ctx context.Context, build func() error) (err error) {
	notice := time.AfterFunc(noticeAfter, func() {
		fmt.Fprintln(os.Stderr, "Building the API server of the tests (internal/apiserver), or waiting for another test that does; the first time this takes some minutes.")
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

// goCommand runs the go command outside of any workspace and returns its standard output.
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
