package statefile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"
)

// lockFile is what is locked of a folder. It stays behind: removing it would let two agents
// lock two files of its name.
const lockFile = ".graceful_node_shutdown_lock"

// lockPause is the time between two attempts.
const lockPause = 50 * time.Millisecond

// errLocked is the error of an attempt that somebody else's lock is in the way of.
var errLocked = errors.New("another agent uses it")

// Lock locks a folder and gives what unlocks it. It waits for the one who has it locked,
// until ctx ends.
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

// pause waits before another attempt; false: ctx ends first.
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
