package statefile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// lockFile is the file that is locked. It is never removed: otherwise two agents could lock two
// files of this name.
const lockFile = ".graceful_node_shutdown_lock"

// lockPause is the pause between two attempts to lock.
const lockPause = 50 * time.Millisecond

// errLocked is the error of tryLock if another process holds the lock.
var errLocked = errors.New("another agent uses it")

// Lock locks a folder and returns its lock, which Close releases. If another process holds the
// lock, Lock waits until ctx ends.
func Lock(ctx context.Context, dir string) (io.Closer, error) {
	path := filepath.Join(dir, lockFile)
	f, err := openLock(path)
	if err != nil {
		return nil, fmt.Errorf("failed to lock folder %s: %w", dir, err)
	}
	info, err := f.Stat()
	if err == nil {
		err = checkOwner(path, info)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to lock folder %s: %w", dir, errors.Join(err, f.Close()))
	}
	for err = tryLock(f); errors.Is(err, errLocked) && pause(ctx); {
		err = tryLock(f)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to lock folder %s: %w", dir, errors.Join(err, f.Close()))
	}
	return f, nil
}

// pause waits before the next attempt. It returns false if ctx ends first.
func pause(ctx context.Context) bool {
	timer := time.NewTimer(lockPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
