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

// patience is how long a build runs in silence.
const patience = 3 * time.Second

// program is built once in the life of a test binary, whatever number of tests
// starts it.
type program struct {
	mu   sync.Mutex // held while it is built
	path string     // "": not built yet
}

// prebuilt names the variable of the environment that holds the path of a program that
// somebody else has built.
const prebuilt = "KUBEGRACE_APISERVER"

// build gives the path of the program. A build that failed is tried again.
func (p *program) build(ctx context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.path != "" {
		return p.path, nil
	}
	if p.path = os.Getenv(prebuilt); p.path != "" {
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
	if err := alone(ctx, func() error {
		_, err := goCommand(ctx, "build", "-C", filepath.Join(root, "internal", "apiserver"), "-buildvcs=false", "-mod=readonly", "-o", path, ".")
		return err
	}); err != nil {
		return "", fmt.Errorf("failed to build the API server of the tests: %w", err)
	}
	p.path = path
	return path, nil
}

// alone calls build while no other process on the machine does, and says what it is
// doing when that takes long. The lock is where the result of a build is: in the
// build cache, which all checkouts share.
func alone(ctx context.Context, build func() error) (err error) {
	said := time.AfterFunc(patience, func() {
		fmt.Fprintln(os.Stderr, "Building the API server of the tests (internal/apiserver), or waiting for another test that does; the first time this takes some minutes.")
	})
	defer said.Stop()
	cache, err := goCommand(ctx, "env", "GOCACHE")
	if err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(cache, "kubegrace-apiserver.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }() // which unlocks it
	if err := lock(file); err != nil {
		return fmt.Errorf("failed to lock %s: %w", file.Name(), err)
	}
	return build()
}

// goCommand runs the go command in no workspace and gives what it prints.
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
