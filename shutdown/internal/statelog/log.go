package statelog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

const (
	// timesFile is the name of the kubelet's file.
	timesFile = "graceful_node_shutdown_state"
	// logFile is the name of the log.
	logFile = "graceful_node_shutdown_log"
	// maxSize is the size of the largest file that is read, in bytes.
	maxSize = 256 << 20
	// rewritePause is the pause between a failed write to the log and the next one.
	rewritePause = 500 * time.Millisecond
)

// Options configures a log. The zero value stores nothing.
type Options struct {
	Dir   string // the state folder, which must exist; "": nothing is stored or read
	Times bool   // write and read the kubelet's file
	// Boot returns the ID of this boot and the time since it began; nil: those of this machine.
	Boot func() (id string, since time.Duration, err error)
	// Before is called before each disk operation ("lock", "read", "write", "sync", "rename" or
	// "times"), in the goroutine that makes it. An error makes the operation fail. May be nil.
	Before func(step, path string) error
	// Wrote is called with the error of each write to the log, in the goroutine that writes. May be nil.
	Wrote func(error)
}

// Log is the state log of an agent. Make one with [New].
type Log struct {
	clock
	opts       Options
	writes     queue
	syncs      queue
	times      queue
	calls      call.Group // the queues' goroutines
	otherCalls call.Group // other calls that may hang

	lockOnce    sync.Once
	lockSettled chan struct{}          // closed when the folder is locked, or is known never to be
	unlock      func() error           // unlocks the folder; may be called again; nil: the folder is not locked
	contents    *call.Future[Contents] // of the log when the folder was locked; the first task of writes reads them

	// The fields below need no mutex: only tasks of the queue l.writes use them, and the queue runs one task at a time. Close
	// and unlockAfterCalls use them too, but only when no task is left.
	newest      newestEntries
	file        *os.File // the log, open for appending; nil: it must be replaced first
	mustReplace bool     // the log must be replaced: this agent has not written it yet, or a write failed
	mustSync    bool     // the log has final statuses that may be pending: a file that replaces the log must be synced
	isRetrying  bool     // the next attempt of a failed write is scheduled
}

// New returns a log. It reads the boot ID, but does not touch the folder before [Log.Lock] or [Log.Read]. Without a folder,
// or without a boot ID ([Log.BootErr]), the log stores no entries, and writes return no error.
func New(o Options) *Log {
	l := &Log{clock: newClock(o.Boot), opts: o, lockSettled: make(chan struct{})}
	l.writes = queue{name: "the writing of " + l.path(logFile), calls: &l.calls}
	l.syncs = queue{name: "the sync of " + l.path(logFile), calls: &l.calls, isOpen: true} // open: only tasks of l.writes add syncs
	l.times = queue{name: "the writing of " + l.path(timesFile), calls: &l.calls}
	var complete func(Contents, error)
	l.contents, complete = call.NewFuture[Contents]()
	// The first task reads the log for [Log.Read]. It runs once the folder is locked, before any write.
	l.writes.add(task{refuse: func(error) { complete(Contents{}, nil) }, run: func() {
		found := l.load()
		_, _ = l.newest.update(found.Entries) // no error: what was decoded can be encoded
		complete(found, nil)
	}})
	if o.Dir == "" {
		l.bootErr = nil // nothing is stored, so a missing boot ID is no error
		l.stopLocking() // there is no folder to lock
	}
	if l.bootErr != nil {
		l.writes.close(nil)
	}
	if !o.Times {
		l.times.close(nil)
	}
	return l
}

// path returns the path of a file of the state folder.
func (l *Log) path(name string) string { return filepath.Join(l.opts.Dir, name) }

// injectedFault calls Options.Before, so that a test can make the operation fail.
func (l *Log) injectedFault(step, path string) error {
	if l.opts.Before == nil {
		return nil
	}
	return l.opts.Before(step, path)
}

// try calls operation, unless a test makes it fail (injectedFault).
func (l *Log) try(step, path string, operation func() error) error {
	if err := l.injectedFault(step, path); err != nil {
		return err
	}
	return operation()
}

// Append queues entries to be appended to the log, and returns at once. It copies them with [node.Entries.Clone], so the
// caller may go on to change its own. The write waits until [Log.Lock] has locked the folder. Entries that wait are written
// together.
//
// The future completes when other processes can read the entries, or with the error of the write. A failed write is repeated
// after a pause, and by the next Append, but the future does not wait for that. A power cut may lose the entries until [Log.Sync]
// has returned.
//
// If the log stores nothing at all, because it has no folder, could not lock it or has no boot ID, the error is always nil, even
// after Close. Otherwise each Append after Close fails.
//
// If the log on the disk is of another boot, call Begin first.
func (l *Log) Append(entries node.Entries) *call.Future[struct{}] {
	copied := entries.Clone()
	if waitingBatch := l.writes.appendToLast(copied); waitingBatch != nil {
		return waitingBatch.written
	}
	return l.addBatch(&batch{entries: copied})
}

// Begin replaces the log by one with only these entries. The old log stays until the new one is
// written. It may have entries that are still needed: call Read first.
func (l *Log) Begin(entries node.Entries) *call.Future[struct{}] {
	return l.addBatch(&batch{entries: entries.Clone(), replacesAll: true})
}

// addBatch queues the write of a batch. It returns the batch's future (written), which completes with the error of the write.
// The first batch of this agent, and each batch of Begin, make write replace the whole log.
func (l *Log) addBatch(added *batch) *call.Future[struct{}] {
	future, complete := newFuture()
	added.written = future
	l.writes.add(task{batch: added, refuse: complete, run: func() {
		if l.file == nil || added.replacesAll {
			l.requireReplacement()
		}
		if added.replacesAll {
			l.newest = newestEntries{}
		}
		lines, err := l.newest.update(added.entries)
		if err != nil {
			err = l.storeError(err)
		}
		err = errors.Join(err, l.write(lines))
		complete(err)
		l.afterWrite(err)
	}})
	return future
}

// afterWrite is called after each write, with its error. If the write has failed, afterWrite has it repeated after
// rewritePause, until a write succeeds or the log is closed.
func (l *Log) afterWrite(err error) {
	if hasFailed := l.mustReplace; hasFailed && !l.isRetrying { // a write that succeeds resets mustReplace
		l.isRetrying = true
		time.AfterFunc(rewritePause, func() { l.writes.add(task{refuse: func(error) {}, run: l.retryWrite}) })
	}
	if l.opts.Wrote != nil {
		l.opts.Wrote(err)
	}
}

// retryWrite repeats a failed write, unless a later write has succeeded.
func (l *Log) retryWrite() {
	l.isRetrying = false
	if l.mustReplace {
		l.afterWrite(l.replace())
	}
}

// write appends lines to the log file. l.newest has their entries already. If the log must be replaced (mustReplace), write
// instead writes a new file with all entries of l.newest.
func (l *Log) write(lines []byte) error {
	if l.mustReplace {
		return l.replace()
	}
	if err := l.try("write", l.path(logFile), func() error { return writeTo(l.file, lines) }); err != nil {
		l.requireReplacement()
		return l.storeError(err)
	}
	return nil
}

// requireReplacement makes the next write replace the log. If the log has a final status that may be pending, the new log is
// synced before it takes the old one's place: a power cut must not lose the status. Otherwise it is not synced, because
// a sync may take long.
func (l *Log) requireReplacement() {
	l.mustReplace, l.mustSync = true, l.mustSync || l.newest.hasPendingStatus()
}

// storeError returns the error of a write. It names the log, not the temporary file, whose name is different in
// each retry: equal errors are logged once.
func (l *Log) storeError(err error) error {
	var ofFile *fs.PathError
	var ofRename *os.LinkError
	switch {
	case errors.As(err, &ofFile):
		err = ofFile.Err
	case errors.As(err, &ofRename):
		err = ofRename.Err
	}
	return fmt.Errorf("failed to store the shutdown state in %s: %w", l.path(logFile), err)
}

// replace writes all entries of l.newest to a new file, which it renames to the log. Other processes see either the old or the
// new log.
func (l *Log) replace() error {
	path := l.path(logFile)
	file, err := os.CreateTemp(l.opts.Dir, tempPrefix+"*") // readable only for this user: preStop hooks may have secrets
	if err != nil {
		return l.storeError(err)
	}
	if err := l.writeAndRename(file, path); err != nil {
		return l.storeError(errors.Join(err, file.Close(), os.Remove(file.Name())))
	}
	if old := l.file; old != nil { // close it after its syncs, which are queued already
		l.syncs.add(task{run: func() { _ = old.Close() }})
	}
	l.file, l.mustReplace, l.mustSync = file, false, false
	return nil
}

// writeAndRename writes the newest entries to file, a temporary one, and renames it to path. If mustSync is set, it syncs the
// file before the renaming.
func (l *Log) writeAndRename(file *os.File, path string) error {
	text, err := l.newest.text(l.bootID)
	if err == nil {
		err = l.try("write", file.Name(), func() error { return writeTo(file, text) })
	}
	if err == nil && l.mustSync {
		err = l.try("sync", file.Name(), file.Sync)
	}
	if err == nil {
		err = l.try("rename", path, func() error { return os.Rename(file.Name(), path) })
	}
	return err
}

// writeTo writes text to a file, and returns only the error.
func writeTo(file *os.File, text []byte) error {
	_, err := file.Write(text)
	return err
}

// Sync makes everything that was appended earlier survive a power cut. It first repeats a failed write. Later writes do
// not wait for the sync. The future completes with the error of the sync, or nil if the log stores nothing at all, because it has
// no folder, could not lock it or has no boot ID.
func (l *Log) Sync() *call.Future[struct{}] {
	future, complete := newFuture()
	l.beginSync(complete)
	return future
}

// beginSync queues a sync of all entries that were queued earlier. If one of their writes has failed, it first replaces the file.
// The sync itself runs in a second queue, so that later writes do not wait for the disk. complete gets the error of the
// replacement or the sync, the error with which a queue refuses the sync, or nil if nothing was written yet.
func (l *Log) beginSync(complete func(error)) {
	l.writes.add(task{refuse: complete, run: func() {
		var err error
		if l.mustReplace {
			err = l.replace()
		}
		file := l.file
		l.syncs.add(task{refuse: complete, run: func() {
			if err == nil && file != nil {
				err = l.sync(file)
			}
			complete(err)
		}})
	}})
}

// sync syncs the log and its folder, in which a rename may have changed the log's entry.
func (l *Log) sync(file *os.File) error {
	err := l.try("sync", l.path(logFile), file.Sync)
	if err == nil {
		err = atomicfile.SyncDir(l.opts.Dir)
	}
	if err != nil {
		return fmt.Errorf("failed to sync the shutdown state: %w", err)
	}
	return nil
}

// SaveTimes stores t in the file that the kubelet has for its metrics of the last shutdown, and syncs the file. The
// future completes when the file is on the disk. It completes at once if nothing is stored:
// without Options.Times, without a folder, or if the folder is not locked.
func (l *Log) SaveTimes(t Times) *call.Future[struct{}] {
	return l.times.addFunc(func() error {
		text, err := json.Marshal(t)
		if err == nil {
			err = l.try("times", l.path(timesFile), func() error { return atomicfile.Write(l.path(timesFile), text) })
		}
		if err != nil {
			return fmt.Errorf("failed to store the times of the shutdown: %w", err)
		}
		return nil
	})
}

// unlockAfterCalls unlocks the folder after all writes and syncs, however long they take.
func (l *Log) unlockAfterCalls() {
	l.calls.Wait(nil)
	if l.file != nil {
		_ = l.file.Close()
	}
	_ = l.unlock()
}

// Close writes and syncs the waiting entries, and then unlocks the folder. It waits for this until the given time, but
// for at least a second, and then drops the tasks that have not started. The error says that entries are not stored, or
// which calls hang. While a call hangs, the folder stays locked: a late write could otherwise replace the file of the
// next agent.
func (l *Log) Close(until time.Time) error {
	isLocked := l.stopLocking() // without the lock nothing is stored
	var err error
	l.beginSync(func(syncErr error) { err = syncErr })
	l.writes.close(errClosed)
	l.times.close(errClosed)
	if isLocked {
		l.otherCalls.Go(func() string { return "the unlocking of " + l.opts.Dir }, l.unlockAfterCalls)
	}
	giveUp := make(chan struct{}) // closed when Close must return
	timer := time.AfterFunc(max(time.Until(until), minWait), func() { close(giveUp) })
	defer timer.Stop()
	if hanging := append(l.calls.Wait(giveUp), l.otherCalls.Wait(giveUp)...); len(hanging) > 0 {
		hangErr := fmt.Errorf("failed to store the shutdown state: %w for %s", call.ErrTimeSpent, strings.Join(hanging, ", "))
		for _, q := range []*queue{&l.writes, &l.syncs, &l.times} {
			q.drop(hangErr)
		}
		return hangErr
	}
	if l.newest.isEmpty() && !l.mustSync {
		return nil // the log has no entries, so a failed sync loses none
	}
	return err
}
