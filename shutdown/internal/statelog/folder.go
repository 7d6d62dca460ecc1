package statelog

import (
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

	"github.com/kubegrace/kubegrace/internal/call"
)

const (
	// lockFile is the name of the locked file. The file is never removed: otherwise two agents could lock two
	// files of this name.
	lockFile = ".graceful_node_shutdown_lock"
	// tempPrefix is the prefix of the names of temporary files.
	tempPrefix = ".tmp-graceful_node_shutdown_"
	// lockPause is the pause between two attempts to lock.
	lockPause = 50 * time.Millisecond
	// minWait is how long Lock still waits after the end of its ctx, and how long Close waits at least. If the disk does not
	// hang, its operations end in this time, so that Lock and Close return their errors. Only a disk that hangs is reported
	// as hanging.
	minWait = time.Second
)

var (
	// errLocked is the error of tryLock if another agent uses the folder.
	errLocked = errors.New("another agent uses it")
	// errClosed is the error of calls after Close.
	errClosed = errors.New("the state log is closed")
)

// Lock locks the folder and removes temporary files of interrupted writes. While another agent has locked it, Lock waits
// until ctx ends. After an error nothing is ever stored. If the disk hangs, Lock returns an error minWait after the end of
// ctx. The warning says that temporary files could not be removed, or that others may write to the folder. Without a
// folder Lock does nothing. Call it once.
func (l *Log) Lock(ctx context.Context) (warning, err error) {
	if l.opts.Dir == "" {
		return nil, nil
	}
	locking := call.Start(ctx, &l.otherCalls, "the locking of "+l.opts.Dir, l.lock)
	select {
	case <-locking.Done():
	case <-ctx.Done(): // l.lock now has minWait to notice the end of ctx
	}
	warning, err = locking.Await(context.WithoutCancel(ctx), time.Now().Add(minWait)) // at once, unless the disk hangs
	if err != nil {
		if isLocked := l.stopLocking(); isLocked { // l.lock has locked the folder in the meantime, and returns soon
			warning, err = locking.Wait(context.WithoutCancel(ctx))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("failed to use the state folder, nothing is stored: failed to lock folder %s: %w", l.opts.Dir, err)
	}
	return warning, nil
}

// settleLock records once and for all whether the folder is locked: only the first call counts. unlock is the function that
// unlocks the folder, or nil if the folder will not be locked. If it is locked, waiting writes begin. Otherwise they return no
// error, but nothing is stored. isLocked is what the first call has recorded.
func (l *Log) settleLock(unlock func() error) (isLocked bool) {
	l.lockOnce.Do(func() {
		l.unlock = unlock
		for _, q := range []*queue{&l.writes, &l.times} {
			if unlock != nil {
				q.open()
			} else { // nil: tasks return no error, although they store nothing
				q.close(nil)
				q.drop(nil)
			}
		}
		close(l.lockSettled)
	})
	return l.unlock != nil
}

// stopLocking ends the tries to lock the folder. A lock that is already held stays, and isLocked is true.
func (l *Log) stopLocking() (isLocked bool) { return l.settleLock(nil) }

// lock locks the folder and removes what interrupted writes have left in it. The warning is that of checkAndCleanFolder.
func (l *Log) lock(ctx context.Context) (warning, err error) {
	path := l.path(lockFile)
	if err := l.injectedFault("lock", path); err != nil {
		return nil, err
	}
	lock, err := openFile(path, os.O_RDWR|os.O_CREATE)
	if isReadOnlyDisk := errors.Is(err, syscall.EROFS); isReadOnlyDisk { // an existing file can be locked nevertheless
		if readable, readErr := openFile(path, os.O_RDONLY); readErr == nil {
			lock, err = readable, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if err = l.waitForLock(ctx, lock); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	warning = l.checkAndCleanFolder()
	if isLocked := l.settleLock(sync.OnceValue(lock.Close)); !isLocked { // Lock has given up, or Close was called
		return nil, errors.Join(errClosed, lock.Close())
	}
	return warning, nil
}

// waitForLock locks the file. While another process has locked it, waitForLock tries again. It gives up with errLocked when ctx
// ends, or when stopLocking was called.
func (l *Log) waitForLock(ctx context.Context, lock *os.File) error {
	info, err := lock.Stat()
	if err == nil {
		err = checkOwner(info)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", lockFile, err)
	}
	again := time.NewTicker(lockPause)
	defer again.Stop()
	for {
		err := tryLock(lock)
		if isLockedByOther := errors.Is(err, errLocked); !isLockedByOther {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		case <-l.lockSettled:
			return err
		}
	}
}

// checkAndCleanFolder checks who may write to the folder, and removes temporary files that interrupted writes have left. The
// error is only a warning: the folder is used anyway.
func (l *Log) checkAndCleanFolder() error {
	if err := errors.Join(l.checkFolder(), l.removeLeftovers()); err != nil {
		return fmt.Errorf("folder %s: %w", l.opts.Dir, err)
	}
	return nil
}

// checkFolder returns an error if others may write to the folder. In a sticky folder, such as /tmp, they may, because they
// cannot replace the files of this user.
func (l *Log) checkFolder() error {
	info, err := os.Stat(l.opts.Dir)
	if err != nil {
		return err
	}
	if isSticky := info.Mode()&fs.ModeSticky != 0; isSticky {
		return nil
	}
	if err := checkMode(info); err != nil {
		return fmt.Errorf("%w; they could replace its files, but the folder is used", err)
	}
	return nil
}

// removeLeftovers removes temporary files that interrupted writes have left in the folder.
func (l *Log) removeLeftovers() error {
	entries, err := os.ReadDir(l.opts.Dir)
	errs := []error{err}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), tempPrefix) && !entry.IsDir() {
			errs = append(errs, os.Remove(filepath.Join(l.opts.Dir, entry.Name())))
		}
	}
	return errors.Join(errs...)
}
