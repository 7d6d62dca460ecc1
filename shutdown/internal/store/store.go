package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

const (
	// timesLag delays the kubelet's file, for which nobody waits. At the beginning of a drain it
	// leaves the disk to the record. Where all pods end at once the write need not be made at all.
	timesLag = 10 * time.Millisecond
	// namesLag delays the sync of the folder, so that it is made once for several writes.
	namesLag = 50 * time.Millisecond
	// leastClose is for what does not hang where the time of Close is over already.
	leastClose = time.Second
)

// Options are the options of a store. The zero value stores nothing.
type Options struct {
	Dir   string // the folder, which must exist; "": nothing is stored or read
	Times bool   // the kubelet's file is written and read
	// Boot returns the ID of this boot and the time since it began; nil: those of this machine.
	Boot func() (id string, since time.Duration, err error)
	// Read returns the content of the file at path, or an error that wraps fs.ErrNotExist; nil: it
	// does so from the disk.
	Read func(path string) ([]byte, error)
	// Write replaces the file at path by what encode writes; nil: it does so on the disk.
	Write func(path string, encode func(io.Writer) error) error
}

// Store keeps the state files of an agent in a folder.
type Store struct {
	boot   boot
	folder *folder
	read   func(path string) ([]byte, error)
	write  func(path string, encode func(io.Writer) error) error
	record *writer    // nil: no record is stored, because there is no folder or no boot ID
	times  *writer    // nil: the kubelet's file is neither written nor read
	names  *writer    // syncs the folder; nil: Options.Write does what is needed
	writes call.Group // the writes of the files
	others call.Group // what else may hang

	mu      sync.Mutex // guards all below
	failure error      // the last one that no future has
}

// New returns a store. It identifies the boot, and reads and writes nothing else.
func New(o Options) *Store {
	s := &Store{folder: &folder{dir: o.Dir, decided: make(chan struct{})}, read: o.Read, write: o.Write}
	if o.Dir == "" {
		s.boot.at = time.Now()
		s.folder.decide(nil)
		return s
	}
	if o.Boot == nil {
		o.Boot = systemBoot
	}
	s.boot = readBoot(o.Boot)
	if s.boot.err == nil {
		s.record = &writer{name: "the writing of " + s.path(RecordFile), calls: &s.writes, folder: s.folder}
	}
	if o.Times {
		s.times = &writer{name: "the writing of " + s.path(TimesFile), calls: &s.writes, folder: s.folder}
	}
	if s.read == nil {
		s.read = readFile
	}
	if s.write == nil {
		s.write = atomicfile.Replace
		s.names = &writer{name: "the sync of " + o.Dir, calls: &s.others, folder: s.folder}
	}
	return s
}

func (s *Store) path(name string) string { return filepath.Join(s.folder.dir, name) }

// BootID returns the ID of this boot; "" if it is not known, or nothing is stored.
func (s *Store) BootID() string { return s.boot.id }

// BootErr returns why the boot cannot be identified, so that no record is stored; nil if it can.
func (s *Store) BootErr() error { return s.boot.err }

// SinceBoot converts a time of this process to the monotonic time since the boot, which is the
// same for the next agent. It saturates: the end of a host without a limit lies in three hundred
// years, and a time before the boot counts as its first nanosecond.
func (s *Store) SinceBoot(t time.Time) time.Duration { return s.boot.sinceBoot(t) }

// TimeOf is the inverse of [Store.SinceBoot].
func (s *Store) TimeOf(since time.Duration) time.Time { return s.boot.timeOf(since) }

// Lock locks the folder. Call it once. It waits for another agent until ctx ends; then the error
// says so, and nothing is stored. Writes that are saved before wait for the lock. Lock removes the
// leftovers of torn writes. The warning says that they could not be removed, or that other users
// may put files into the folder.
func (s *Store) Lock(ctx context.Context) (warning, err error) {
	if s.folder.dir == "" {
		return nil, nil
	}
	return s.folder.lock(ctx, &s.others)
}

// Save stores what content returns. The write begins after lag, after the lock of the folder, and
// after the write before it. A newer Save replaces one that has not begun: its content is stored,
// at the earlier of both times, and both have the same future. content is called when the write
// begins, in another goroutine.
//
// The future completes when the content is on the disk and every process finds it, or when the
// write has failed. The folder is synced afterwards: until then a power cut may bring back the old
// file. The future completes without an error if nothing is stored (no folder, no lock, no boot
// ID), and with one after Close. If a write of a cancelled shutdown fails, the old file is removed,
// because it may say that the shutdown goes on.
func (s *Store) Save(lag time.Duration, content func() Content) *call.Future[struct{}] {
	return s.record.save(lag, func() error {
		c := content()
		c.Record.BootID = cmp.Or(c.Record.BootID, s.boot.id)
		err := s.replace(RecordFile, c.encode)
		if err != nil && c.Record.Report.Cancelled {
			err = errors.Join(err, s.removeRecord())
		}
		return err
	})
}

// SaveTimes stores the kubelet's file, beside the record, after 10 ms. A newer SaveTimes replaces
// one that has not begun. The future is as that of [Store.Save].
func (s *Store) SaveTimes(t Times) *call.Future[struct{}] {
	return s.times.save(timesLag, func() error {
		return s.replace(TimesFile, func(w io.Writer) error {
			text, err := json.Marshal(t)
			if err == nil {
				_, err = w.Write(text)
			}
			return err
		})
	})
}

// replace replaces a file.
func (s *Store) replace(name string, encode func(io.Writer) error) error {
	if err := s.write(s.path(name), encode); err != nil {
		return fmt.Errorf("failed to store the shutdown state: %w", err)
	}
	s.names.save(namesLag, s.syncNames)
	return nil
}

func (s *Store) removeRecord() error {
	if err := os.Remove(s.path(RecordFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("failed to remove a shutdown state that is no longer true: %w", err)
	}
	s.names.save(namesLag, s.syncNames)
	return nil
}

func (s *Store) syncNames() error {
	err := atomicfile.SyncDir(s.folder.dir)
	if err != nil {
		s.fail(fmt.Errorf("failed to sync the state folder: %w", err))
	}
	return err
}

func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = cmp.Or(err, s.failure)
}

// Close makes the writes that wait at once, waits for them until a time, or for a second if that is
// later, and unlocks the folder. Writes that have not begun by then are dropped. An error names what still hangs; the
// folder stays locked until that ends, so that a late write replaces no file of another agent. The
// error also has a failure of the sync of the folder, for which no future waits.
func (s *Store) Close(until time.Time) error {
	s.folder.decide(nil)
	s.record.close()
	s.times.close()
	s.others.Go(func() string { return "the unlocking of " + s.folder.dir }, func() {
		s.writes.Wait(nil)
		s.names.close()
		s.fail(s.folder.unlock())
	})
	enough := make(chan struct{})
	timer := time.AfterFunc(max(time.Until(until), leastClose), func() { close(enough) })
	defer timer.Stop()
	hanging := append(s.writes.Wait(enough), s.others.Wait(enough)...)
	var err error
	if len(hanging) > 0 {
		err = fmt.Errorf("failed to store the shutdown state: %w for %s", call.ErrTimeSpent, strings.Join(hanging, ", "))
		s.record.drop(err)
		s.times.drop(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(err, s.failure)
}
