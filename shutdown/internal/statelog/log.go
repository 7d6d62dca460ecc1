package statelog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

const (
	// TimesFile is the name of the kubelet's file.
	TimesFile = "graceful_node_shutdown_state"
	// LogFile is the name of the file with the log.
	LogFile = "graceful_node_shutdown_log"
	// MaxSize is the largest size, in bytes, of a file that is read.
	MaxSize = 256 << 20
	// mode is that of the kubelet's state files: everybody may read them.
	mode = 0o644
)

// Options are the options of a log. The zero value stores nothing.
type Options struct {
	Dir   string // the folder, which must exist; "": nothing is stored or read
	Times bool   // the kubelet's file is written and read
	// Boot returns the ID of this boot and the time since it began; nil: those of this machine.
	Boot func() (id string, since time.Duration, err error)
	// Before is called before each step on the disk, in the goroutine that makes it: "lock", "read",
	// "write", "sync", "rename" or "times", with a path. If it returns an error the step fails. nil:
	// nothing is called.
	Before func(step, path string) error
}

// Log is the state log of an agent. Make one with [New].
type Log struct {
	clock
	opts   Options
	writes queue
	syncs  queue
	times  queue
	calls  call.Group // the goroutines of the queues
	others call.Group // what else may hang

	decided   sync.Once
	isDecided chan struct{} // closed when the folder is locked, or never will be
	unlock    func() error  // may be called again; nil: the lock was not had
	found     *call.Future[Contents]

	newest newestEntries // of the goroutine of writes
	file   *os.File      // the log, to append to; nil: it has to be replaced first
	behind bool          // the log lacks an entry of newest
	guards bool          // the log has what newest lacks, and a power cut must not lose it
}

// New returns a log. It identifies the boot, and reads and writes nothing else.
func New(o Options) *Log {
	l := &Log{clock: newClock(o.Boot), opts: o, isDecided: make(chan struct{})}
	l.writes = queue{name: "the writing of " + l.path(LogFile), calls: &l.calls}
	l.syncs = queue{name: "the sync of " + l.path(LogFile), calls: &l.calls, isOpen: true}
	l.times = queue{name: "the writing of " + l.path(TimesFile), calls: &l.calls}
	var complete func(Contents, error)
	l.found, complete = call.NewFuture[Contents]()
	l.writes.add(task{refuse: func(error) { complete(Contents{}, nil) }, run: func() {
		var found Contents
		found, l.newest = l.load()
		complete(found, nil)
	}})
	if o.Dir == "" {
		l.err = nil // nobody needs it
		l.decide(nil)
	}
	if l.err != nil {
		l.writes.close(nil)
	}
	if !o.Times {
		l.times.close(nil)
	}
	return l
}

func (l *Log) path(name string) string { return filepath.Join(l.opts.Dir, name) }

// before is called before a step on the disk.
func (l *Log) before(step, path string) error {
	if l.opts.Before == nil {
		return nil
	}
	return l.opts.Before(step, path)
}

// Append has entries written, each a [node.Shutdown] or a [node.Pod]. It returns at once, and keeps
// nothing that the caller may change; the Object and the Status of a pod, and the timetable of a shutdown, must
// not change. Nothing is written before the folder is locked. The future completes when every
// process finds the entries; until [Log.Sync] a power cut may lose them. It completes without an error if
// nothing is stored (no folder, no lock, no boot ID), and with one after Close. What could not be written is
// written by the next call. Entries that wait for the disk are written together.
//
// If the log is not of this boot, the entries begin a new one. The core hands out all that is still
// needed of it with the answer to its [node.Read]: Begin with that.
func (l *Log) Append(entries ...any) *call.Future[struct{}] {
	copied := copies(entries)
	if joined := l.writes.join(copied); joined != nil {
		return joined.written
	}
	return l.add(copied, false)
}

// Begin begins a new log, with these entries alone. The old one stays until the new one is written.
func (l *Log) Begin(entries ...any) *call.Future[struct{}] { return l.add(copies(entries), true) }

// copies returns entities whose slices are their own.
func copies(entities []any) []any {
	copied := slices.Clone(entities)
	for i, entity := range copied {
		switch entity := entity.(type) {
		case node.Shutdown:
			entity.Announced, entity.Errors = slices.Clone(entity.Announced), slices.Clone(entity.Errors)
			copied[i] = entity
		case node.Pod:
			if len(entity.Joined) > 0 {
				entity.Joined = slices.Clone(entity.Joined)
				copied[i] = entity
			}
		}
	}
	return copied
}

func (l *Log) add(entries []any, isNew bool) *call.Future[struct{}] {
	future, complete := newFuture()
	added := &batch{entities: entries, written: future}
	l.writes.add(task{batch: added, refuse: complete, run: func() {
		if isNew || !l.newest.sameBoot {
			l.guards = l.guards || l.newest.hasPending()
			l.newest = newestEntries{sameBoot: true}
			l.behind = true
		}
		text, err := l.newest.put(added.entities)
		complete(errors.Join(err, l.write(text)))
	}})
	return future
}

// write appends the text of entries that newest has already, or, if the log is behind, replaces the log by
// one with all of newest.
func (l *Log) write(text []byte) error {
	if l.file == nil || l.behind {
		return l.replace()
	}
	err := l.before("write", l.path(LogFile))
	if err == nil {
		_, err = l.file.Write(text)
	}
	if err != nil {
		l.behind = true
		return l.notStored(err)
	}
	return nil
}

// notStored returns the error of a write. It names the log and not the file that was to replace it, so
// that it is the same when the write is tried again.
func (l *Log) notStored(err error) error {
	var ofFile *fs.PathError
	var ofRename *os.LinkError
	switch {
	case errors.As(err, &ofFile):
		err = ofFile.Err
	case errors.As(err, &ofRename):
		err = ofRename.Err
	}
	return fmt.Errorf("failed to store the shutdown state in %s: %w", l.path(LogFile), err)
}

// replace replaces the log by one with all of newest. A process that dies meanwhile leaves the
// old log or the new one. So does a power cut if final statuses may be pending; otherwise nobody waits
// for a sync.
func (l *Log) replace() error {
	l.behind = true
	path := l.path(LogFile)
	file, err := os.CreateTemp(l.opts.Dir, leftovers+"*")
	if err == nil {
		if err = l.fill(file, path); err != nil {
			err = errors.Join(err, file.Close(), os.Remove(file.Name()))
		}
	}
	if err != nil {
		return l.notStored(err)
	}
	if old := l.file; old != nil {
		l.syncs.add(task{run: func() { _ = old.Close() }}) // after the syncs of it
	}
	l.file, l.behind, l.guards = file, false, false
	return nil
}

// fill writes the newest entries to a file, and renames that.
func (l *Log) fill(file *os.File, path string) error {
	text, err := l.newest.text(l.id)
	if err == nil {
		err = l.before("write", file.Name())
	}
	if err == nil {
		_, err = file.Write(text)
	}
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil && (l.guards || l.newest.hasPending()) {
		if err = l.before("sync", file.Name()); err == nil {
			err = file.Sync()
		}
	}
	if err == nil {
		err = l.before("rename", path)
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	return err
}

// Sync has all that was appended before survive a power cut: the file and its name. What could not be
// written is tried again. The sync is made beside later writes. The future is as that of Append.
func (l *Log) Sync() *call.Future[struct{}] {
	future, complete := newFuture()
	l.beginSync(complete)
	return future
}

func (l *Log) beginSync(complete func(error)) {
	l.writes.add(task{refuse: complete, run: func() {
		var err error
		if l.behind {
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

func (l *Log) sync(file *os.File) error {
	err := l.before("sync", l.path(LogFile))
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		err = atomicfile.SyncDir(l.opts.Dir)
	}
	if err != nil {
		return fmt.Errorf("failed to sync the shutdown state: %w", err)
	}
	return nil
}

// SaveTimes stores the kubelet's file, beside the log, and syncs it. The future is as that of Append.
func (l *Log) SaveTimes(t Times) *call.Future[struct{}] {
	return l.times.do(func() error {
		text, err := json.Marshal(t)
		if err == nil {
			err = l.before("times", l.path(TimesFile))
		}
		if err == nil {
			err = atomicfile.Write(l.path(TimesFile), text)
		}
		if err != nil {
			return fmt.Errorf("failed to store the times of the shutdown: %w", err)
		}
		return nil
	})
}

// Close writes and syncs what waits, until a time, or for a second if that is later, and unlocks the
// folder. What has not begun by then is dropped. An error says that entries are not stored, or names what still
// hangs; the folder stays locked until that ends, so that a late write replaces no file of another agent.
func (l *Log) Close(until time.Time) error {
	isLocked := l.decide(nil)
	var err error
	l.beginSync(func(syncErr error) { err = syncErr })
	l.writes.close(errClosed)
	l.times.close(errClosed)
	if isLocked {
		l.others.Go(func() string { return "the unlocking of " + l.opts.Dir }, func() {
			l.calls.Wait(nil)
			if l.file != nil {
				_ = l.file.Close()
			}
			_ = l.unlock()
		})
	}
	enough := make(chan struct{})
	timer := time.AfterFunc(max(time.Until(until), lastWait), func() { close(enough) })
	defer timer.Stop()
	if hanging := append(l.calls.Wait(enough), l.others.Wait(enough)...); len(hanging) > 0 {
		hangErr := fmt.Errorf("failed to store the shutdown state: %w for %s", call.ErrTimeSpent, strings.Join(hanging, ", "))
		for _, q := range []*queue{&l.writes, &l.syncs, &l.times} {
			q.drop(hangErr)
		}
		return hangErr
	}
	if len(l.newest.entries) == 0 && !l.guards {
		return nil // a log without entries loses none
	}
	return err
}
