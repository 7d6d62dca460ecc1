package store_test

import (
	"encoding/json"
	"errors"
	"io"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/store"
)

var errFull = errors.New("no space left")

func at(second int) time.Time { return time.Date(2026, 9, 30, 12, 0, second, 123456789, time.UTC) }

// boot is an hour after the boot.
func boot() (id string, since time.Duration, err error) { return "one", time.Hour, nil }

func options(dir string) store.Options {
	return store.Options{Dir: dir, Times: true, Boot: boot}
}

// locked returns a store that has locked its folder.
func locked(t testing.TB, o store.Options) *store.Store {
	t.Helper()
	s := store.New(o)
	warning, err := s.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, warning)
	return s
}

// read reads the files of a store, which do not hang.
func read(t testing.TB, s *store.Store) store.Contents {
	t.Helper()
	var calls call.Group
	found := s.Read(t.Context(), &calls, time.Now().Add(time.Minute))
	require.Empty(t, calls.Wait(nil))
	return found
}

// await waits for a write and returns its error.
func await(t testing.TB, saved *call.Future[struct{}]) error {
	t.Helper()
	_, err := saved.Wait(t.Context())
	return err
}

// save stores a record and waits for that.
func save(t testing.TB, s *store.Store, r store.Record) {
	t.Helper()
	require.NoError(t, await(t, s.Save(0, content(r))))
}

// content returns a function that returns a record for Save.
func content(r store.Record) func() store.Content {
	return func() store.Content {
		return store.Content{Record: r, Pods: pointers(r.Report.Pods), Debts: pointers(r.Debts)}
	}
}

// pointers yields the same pointer for each element, as a caller may.
func pointers[T any](all []T) iter.Seq[*T] {
	if all == nil {
		return nil
	}
	return func(yield func(*T) bool) {
		var current T
		for _, current = range all {
			if !yield(&current) {
				return
			}
		}
	}
}

func pod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: name, UID: "uid"}, Status: v1.PodStatus{Phase: v1.PodFailed}}
}

// example is a record with all fields.
func example() store.Record {
	grace := int64(0)
	return store.Record{
		Version:       3,
		BootID:        "one",
		Announcements: []store.Announcement{{Host: true, Kind: "reboot", Deadline: 2 * time.Hour}, {Origin: `cloud "x"`}},
		Dismissed:     true,
		T0:            time.Minute, H: time.Hour,
		Timetable: json.RawMessage(`{"a":[1,2]}`),
		Begun:     2, Done: 1,
		Prepared: true, Held: true, Published: true,
		Refused: 7,
		Debts:   []store.Debt{{Kind: store.DebtStatus, Pod: pod("a")}, {Kind: store.DebtReady, Pod: pod("b")}},
		Report: store.Report{
			Kind: "reboot", Origin: "<host>", Started: at(1), Ended: at(2), Cancelled: true, Errors: []string{"first", "\x00"},
			Pods: []store.Pod{
				{
					Namespace: "test", Name: "a", UID: "uid-a", Priority: -1, Bucket: 5, GrantedSeconds: 20, Started: at(3), Ended: at(4),
					Outcome: "Graceful", Error: "ü", Unflushed: true, Joined: true, Signalled: true, GraceSeconds: &grace, End: pod("a"),
				},
				{Name: "planned"},
			},
		},
	}
}

// disk is a disk of a test that keeps what is written in memory. Its zero value is ready to use.
type disk struct {
	before func(path string) error // is called before each write; nil: nothing is

	mu      sync.Mutex
	written [][]byte
	pieces  []int // the sizes of the pieces of all writes
	writing int   // the number of writes under way
	most    int   // the largest number of writes under way
}

func (d *disk) write(path string, encode func(io.Writer) error) error {
	d.mu.Lock()
	d.writing++
	d.most = max(d.most, d.writing)
	d.mu.Unlock()
	var text piecewise
	var err error
	if d.before != nil {
		err = d.before(path)
	}
	if err == nil {
		err = encode(&text)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writing--
	if err == nil {
		d.written = append(d.written, text.all)
		d.pieces = append(d.pieces, text.sizes...)
	}
	return err
}

// records returns the records that were written.
func (d *disk) records(t *testing.T) []store.Record {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	records := make([]store.Record, len(d.written))
	for i, text := range d.written {
		require.NoError(t, json.Unmarshal(text, &records[i]), "%s", text)
	}
	return slices.Clip(records)
}

// piecewise keeps a text and the sizes of its pieces.
type piecewise struct {
	all   []byte
	sizes []int
}

func (p *piecewise) Write(text []byte) (int, error) {
	p.all, p.sizes = append(p.all, text...), append(p.sizes, len(text))
	return len(text), nil
}
