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
	// lockFile is the file that is locked. It is never removed: otherwise two agents could lock two
	// files of this name.
	lockFile = ".graceful_node_shutdown_lock"
	// leftovers is how the names of temporary files of the state files begin.
	leftovers = ".tmp-graceful_node_shutdown_"
	// lockPause is the pause between two attempts to lock.
	lockPause = 50 * time.Millisecond
	// lastWait is for what does not hang where the time to wait for it is over already.
	lastWait = time.Second
)

var (
	// ErrLocked is wrapped by the error of [Log.Lock] if another agent has the folder.
	ErrLocked = errors.New("another agent uses it")
	// errClosed is the error of what begins after Close.
	errClosed = errors.New("the state log is closed")
)

// Lock locks the folder. Call it once. It waits for another agent until ctx ends; then the error says
// so, and nothing is stored. Lock removes the leftovers of torn writes. The warning says that they could
// not be removed, or that other users may put files into the folder.
func (l *Log) Lock(ctx context.Context) (warning, err error) {
	if l.opts.Dir == "" {
		return nil, nil
	}
	locking := call.Start(ctx, &l.others, "the locking of "+l.opts.Dir, l.lock)
	select {
	case <-locking.Done():
	case <-ctx.Done():
	}
	// Unless it hangs, it now says what it has waited for.
	warning, err = locking.Await(context.WithoutCancel(ctx), time.Now().Add(lastWait))
	if err != nil && l.decide(nil) { // it was locked just then
		warning, err = locking.Wait(context.WithoutCancel(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("failed to use the state folder, nothing is stored: failed to lock folder %s: %w", l.opts.Dir, err)
	}
	return warning, nil
}

// decide ends the wait for the lock: it is held, with a function that unlocks, or it will not be (nil).
// Only the first call counts. It returns whether the lock is held. The first task reads the log.
func (l *Log) decide(unlock func() error) bool {
	l.decided.Do(func() {
		if l.unlock = unlock; unlock == nil {
			for _, q := range []*queue{&l.writes, &l.times} {
				q.close(nil)
				q.drop(nil)
			}
		} else {
			l.writes.open()
			l.times.open()
		}
		close(l.isDecided)
	})
	return l.unlock != nil
}

// lock locks the folder, removes leftovers, and decides that the lock is held.
func (l *Log) lock(ctx context.Context) (warning, err error) {
	path := l.path(lockFile)
	if err := l.before("lock", path); err != nil {
		return nil, err
	}
	lock, err := openFile(path, os.O_RDWR|os.O_CREATE)
	if errors.Is(err, syscall.EROFS) { // a file that exists can be locked all the same
		if readable, readErr := openFile(path, os.O_RDONLY); readErr == nil {
			lock, err = readable, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if err = l.take(ctx, lock); err == nil {
		warning = l.tidy()
		if l.decide(sync.OnceValue(lock.Close)) {
			return warning, nil
		}
		err = errClosed
	}
	return nil, errors.Join(err, lock.Close())
}

// take locks the file. If another process holds the lock it waits until ctx ends, or nobody waits for
// the lock any more.
func (l *Log) take(ctx context.Context, lock *os.File) error {
	info, err := lock.Stat()
	if err == nil {
		err = checkOwner(info)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", lockFile, err)
	}
	again := time.NewTicker(lockPause)
	defer again.Stop()
	for err = tryLock(lock); errors.Is(err, ErrLocked); err = tryLock(lock) {
		select {
		case <-again.C:
			continue
		case <-ctx.Done():
		case <-l.isDecided:
		}
		return err
	}
	return err
}

// tidy removes the temporary files of interrupted writes. The error says that this failed, or that other
// users may put files into the folder, which can be used all the same.
func (l *Log) tidy() error {
	info, err := os.Stat(l.opts.Dir)
	if err == nil && info.Mode()&fs.ModeSticky == 0 {
		err = checkMode(info)
	}
	entries, listErr := os.ReadDir(l.opts.Dir)
	errs := []error{err, listErr}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), leftovers) && !entry.IsDir() {
			errs = append(errs, os.Remove(filepath.Join(l.opts.Dir, entry.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("folder %s: %w", l.opts.Dir, err)
	}
	return nil
}
