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
	"time"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

const (
	// TimesFile is the name of the kubelet's file.
	TimesFile = "graceful_node_shutdown_state"
	// RecordFile is the name of the file with the record of a shutdown.
	RecordFile = "graceful_node_shutdown_progress"
	// MaxSize is the largest size, in bytes, of a file that is read. The record of 50,000 pods
	// takes 10 MB before they are killed, and 100 MB when the final status of each is owed.
	MaxSize = 256 << 20

	// timesLag delays the kubelet's file, for which nobody waits. At the beginning of a drain it
	// leaves the disk to the record. Where all pods end at once the write need not be made at all.
	timesLag = 10 * time.Millisecond
	// namesLag delays the sync of the folder, so that it is made once for several writes.
	namesLag = 50 * time.Millisecond
	// lastWait is for what does not hang where the time to wait for it is over already.
	lastWait = time.Second
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
	clock

	opts   Options // without nils
	folder *folder
	record *writer
	times  *writer
	names  *writer    // syncs the folder
	writes call.Group // the writes of the files
	others call.Group // what else may hang
}

// New returns a store. It identifies the boot, and reads and writes nothing else.
func New(o Options) *Store {
	s := &Store{folder: &folder{dir: o.Dir, decided: make(chan struct{})}}
	if o.Boot == nil {
		o.Boot = systemBoot
	}
	if o.Dir != "" {
		s.id, s.since, s.err = o.Boot()
		s.at = time.Now()
	}
	if o.Read == nil {
		o.Read = readFile
	}
	syncs := o.Write == nil
	if syncs {
		o.Write = atomicfile.Replace
	}
	s.opts = o
	s.record = s.newWriter("writing of "+s.path(RecordFile), &s.writes, s.err == nil)
	s.times = s.newWriter("writing of "+s.path(TimesFile), &s.writes, o.Times)
	s.names = s.newWriter("sync of "+o.Dir, &s.others, syncs)
	return s
}

// newWriter returns a writer. One that is not needed writes nothing.
func (s *Store) newWriter(name string, calls *call.Group, needed bool) *writer {
	return &writer{name: "the " + name, calls: calls, folder: s.folder, closed: !needed || s.opts.Dir == ""}
}

func (s *Store) path(name string) string { return filepath.Join(s.opts.Dir, name) }

// Lock locks the folder. Call it once. It waits for another agent until ctx ends; then the error
// says so, and nothing is stored. Writes that are saved before wait for the lock. Lock removes the
// leftovers of torn writes. The warning says that they could not be removed, or that other users
// may put files into the folder.
func (s *Store) Lock(ctx context.Context) (warning, err error) {
	if s.opts.Dir == "" {
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
		c.Record.BootID = cmp.Or(c.Record.BootID, s.id)
		err := s.replace(RecordFile, c.encode)
		if err != nil && c.Record.Report.Cancelled {
			if removeErr := os.Remove(s.path(RecordFile)); removeErr == nil {
				s.names.save(namesLag, s.folder.sync)
			} else if !errors.Is(removeErr, fs.ErrNotExist) {
				err = fmt.Errorf("%w; failed to remove a shutdown state that is no longer true: %w", err, removeErr)
			}
		}
		if c.Written != nil {
			c.Written(err)
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

func (s *Store) replace(name string, encode func(io.Writer) error) error {
	if err := s.opts.Write(s.path(name), encode); err != nil {
		return fmt.Errorf("failed to store the shutdown state: %w", err)
	}
	s.names.save(namesLag, s.folder.sync)
	return nil
}

// Close makes the writes that wait at once, waits for them until a time, or for a second if that is
// later, and unlocks the folder. Writes that have not begun by then are dropped. An error names what
// still hangs; the folder stays locked until that ends, so that a late write replaces no file of
// another agent. The error also has a failure of the sync of the folder, for which no future waits.
func (s *Store) Close(until time.Time) error {
	s.folder.decide(nil)
	s.record.close()
	s.times.close()
	s.others.Go(func() string { return "the unlocking of " + s.opts.Dir }, func() {
		s.writes.Wait(nil)
		s.names.close()
		if s.folder.decide(nil) {
			s.folder.fail(s.folder.unlock())
		}
	})
	enough := make(chan struct{})
	timer := time.AfterFunc(max(time.Until(until), lastWait), func() { close(enough) })
	defer timer.Stop()
	hanging := append(s.writes.Wait(enough), s.others.Wait(enough)...)
	var err error
	if len(hanging) > 0 {
		err = fmt.Errorf("failed to store the shutdown state: %w for %s", call.ErrTimeSpent, strings.Join(hanging, ", "))
		s.record.drop(err)
		s.times.drop(err)
	}
	s.folder.mu.Lock()
	defer s.folder.mu.Unlock()
	return errors.Join(err, s.folder.failure)
}
