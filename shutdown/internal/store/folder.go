package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

const (
	// lockFile is the file that is locked. It is never removed: otherwise two agents could lock two
	// files of this name.
	lockFile = ".graceful_node_shutdown_lock"
	// leftovers is how the names of temporary files of the state files begin.
	leftovers = ".tmp-graceful_node_shutdown_"
	// lockPause is the pause between two attempts to lock.
	lockPause = 50 * time.Millisecond
)

var (
	// errLocked is the error of tryLock if another process holds the lock.
	errLocked = errors.New("another agent uses it")
	// errClosed is the error of what begins after Close.
	errClosed = errors.New("the store is closed")
)

// folder is the state folder and its lock. Nothing is written before it is decided that the lock
// is held.
type folder struct {
	dir     string
	decided chan struct{} // closed when the folder is locked, or never will be
	once    sync.Once     // sets unlock and closes decided
	unlock  func() error  // may be called again; nil: the lock was not had

	mu      sync.Mutex // guards failure
	failure error      // the last one of sync and unlock, of which no future tells
}

// lock locks the folder and removes leftovers. It waits until ctx ends; calls has the goroutine
// that may still hang then.
func (f *folder) lock(ctx context.Context, calls *call.Group) (warning, err error) {
	locking := call.Start(ctx, calls, "the locking of "+f.dir, f.open)
	warning, err = locking.Wait(ctx)
	uncancelled := context.WithoutCancel(ctx)
	if ctx.Err() != nil { // unless it hangs, it now says what it waited for
		warning, err = locking.Await(uncancelled, time.Now().Add(lastWait))
	}
	if err != nil && f.decide(nil) { // it was locked just then
		warning, err = locking.Wait(uncancelled)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to use the state folder, nothing is stored: failed to lock folder %s: %w", f.dir, err)
	}
	return warning, nil
}

// decide ends the wait for the lock: it is held, with a function that unlocks, or it will not be
// (nil). Only the first call counts. It returns whether the lock was had.
func (f *folder) decide(unlock func() error) bool {
	f.once.Do(func() {
		f.unlock = unlock
		close(f.decided)
	})
	return f.unlock != nil
}

// fail keeps an error; nil is none.
func (f *folder) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failure = cmp.Or(err, f.failure)
}

// open locks the folder, removes leftovers, and decides that the lock is held.
func (f *folder) open(ctx context.Context) (warning, err error) {
	path := filepath.Join(f.dir, lockFile)
	lock, err := openFile(path, os.O_RDWR|os.O_CREATE)
	if errors.Is(err, syscall.EROFS) { // a file that exists can be locked all the same
		if readable, readErr := openFile(path, os.O_RDONLY); readErr == nil {
			lock, err = readable, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if err = f.take(ctx, lock); err == nil {
		warning = f.tidy()
		if f.decide(sync.OnceValue(lock.Close)) {
			return warning, nil
		}
		err = errClosed
	}
	return nil, errors.Join(err, lock.Close())
}

// take locks the file. If another process holds the lock it waits until ctx ends, or nobody waits
// for the lock any more.
func (f *folder) take(ctx context.Context, lock *os.File) error {
	info, err := lock.Stat()
	if err == nil {
		err = checkOwner(info)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", lockFile, err)
	}
	again := time.NewTicker(lockPause)
	defer again.Stop()
	for err = tryLock(lock); errors.Is(err, errLocked); err = tryLock(lock) {
		select {
		case <-again.C:
			continue
		case <-ctx.Done():
		case <-f.decided:
		}
		return err
	}
	return err
}

// tidy removes the temporary files of interrupted writes. The error says that this failed, or that
// other users may put files into the folder, which can be used all the same.
func (f *folder) tidy() error {
	info, err := os.Stat(f.dir)
	if err == nil && info.Mode()&fs.ModeSticky == 0 {
		err = checkMode(info)
	}
	entries, listErr := os.ReadDir(f.dir)
	errs := []error{err, listErr}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), leftovers) && !entry.IsDir() {
			errs = append(errs, os.Remove(filepath.Join(f.dir, entry.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("folder %s: %w", f.dir, err)
	}
	return nil
}

// sync has the names in the folder survive a power cut.
func (f *folder) sync() error {
	err := atomicfile.SyncDir(f.dir)
	if err != nil {
		f.fail(fmt.Errorf("failed to sync the state folder: %w", err))
	}
	return err
}
