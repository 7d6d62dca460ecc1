package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

// lockFile is the file that is locked. It is never removed: otherwise two agents could lock two
// files of this name.
const lockFile = ".graceful_node_shutdown_lock"

// lockPause is the pause between two attempts to lock.
const lockPause = 50 * time.Millisecond

var (
	// errLocked is the error of tryLock if another process holds the lock.
	errLocked = errors.New("another agent uses it")
	// errClosed is the error of what begins after Close.
	errClosed = errors.New("the store is closed")
)

// folder is the state folder and its lock. Nothing is written before it is decided that the lock
// is held.
type folder struct {
	dir     string        // "": there is none, and nothing is stored
	decided chan struct{} // closed when the folder is locked, or never will be

	mu   sync.Mutex // guards all below
	held io.Closer  // the lock; nil: not held
}

// lock locks the folder and removes leftovers. It waits until ctx ends; calls has the goroutine
// that may still hang then.
func (f *folder) lock(ctx context.Context, calls *call.Group) (warning, err error) {
	var inUse atomic.Bool // by another agent
	locking := call.Start(ctx, calls, "the locking of "+f.dir, func(ctx context.Context) (warning, err error) {
		lock, err := f.openLock(ctx, &inUse)
		if err != nil {
			return nil, err
		}
		warning = errors.Join(checkFolder(f.dir), removeLeftovers(f.dir, TimesFile, RecordFile))
		if !f.decide(lock) {
			return nil, errors.Join(errClosed, lock.Close())
		}
		return warning, nil
	})
	warning, err = locking.Wait(ctx)
	if err != nil && f.decide(nil) { // it was locked just as ctx ended
		warning, err = locking.Wait(context.WithoutCancel(ctx))
	}
	if err != nil && inUse.Load() && ctx.Err() != nil {
		err = errLocked
	}
	if err != nil {
		return nil, fmt.Errorf("failed to use the state folder, nothing is stored: failed to lock folder %s: %w", f.dir, err)
	}
	return warning, nil
}

// decide ends the wait for the lock: it is held, or it will not be (nil). Only the first call
// counts. It returns whether the lock is held.
func (f *folder) decide(lock io.Closer) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.decided:
	default:
		f.held = lock
		close(f.decided)
	}
	return f.held != nil
}

// awaitLock waits until it is decided whether the lock is held, and returns that.
func (f *folder) awaitLock() bool {
	<-f.decided
	return f.decide(nil)
}

// unlock releases the lock if it is held.
func (f *folder) unlock() error {
	f.mu.Lock()
	held := f.held
	f.held = nil
	f.mu.Unlock()
	if held == nil {
		return nil
	}
	return held.Close()
}

// openLock locks the folder. Closing the result unlocks it. If another process holds the lock,
// openLock sets inUse and waits until ctx ends, or nobody waits for the lock any more.
func (f *folder) openLock(ctx context.Context, inUse *atomic.Bool) (io.Closer, error) {
	lock, err := openLockFile(filepath.Join(f.dir, lockFile))
	if err != nil {
		return nil, err
	}
	info, err := lock.Stat()
	if err == nil {
		err = checkOwner(info)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", lockFile, errors.Join(err, lock.Close()))
	}
	for err = tryLock(lock); errors.Is(err, errLocked); err = tryLock(lock) {
		inUse.Store(true)
		if !f.pause(ctx) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// pause waits before the next attempt. It returns false if there is to be none.
func (f *folder) pause(ctx context.Context) bool {
	timer := time.NewTimer(lockPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-f.decided:
	}
	return false
}

// checkFolder returns an error if other users may put files into a folder. Such a folder can still
// be used.
func checkFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if hasOwners && info.Mode().Perm()&othersMayWrite != 0 && info.Mode()&fs.ModeSticky == 0 {
		return fmt.Errorf("folder %s may be written to by others: its mode is %v", dir, info.Mode().Perm())
	}
	return nil
}

// removeLeftovers removes the temporary files of interrupted writes of these files. No other
// process may write them meanwhile.
func removeLeftovers(dir string, names ...string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		for _, name := range names {
			if strings.HasPrefix(entry.Name(), ".tmp-"+name) && !entry.IsDir() {
				errs = append(errs, os.Remove(filepath.Join(dir, entry.Name())))
			}
		}
	}
	return errors.Join(errs...)
}
