//go:build go1.25

package statelog_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/internal/statelog"
)

var errFull = errors.New("no space left")

// disk can be made to fail or hang. The zero value does neither.
type disk struct {
	mu    sync.Mutex
	steps []string
	fault func(step, path string) error // nil: none
}

// before is the Before of an Options: it records the step, and returns the error of the fault.
func (d *disk) before(step, path string) error {
	d.mu.Lock()
	d.steps = append(d.steps, step)
	fault := d.fault
	d.mu.Unlock()
	if fault == nil {
		return nil
	}
	return fault(step, path)
}

// set replaces the fault; nil: the disk works.
func (d *disk) set(fault func(step, path string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = fault
}

// taken returns the steps since the last call of taken, such as "write rename".
func (d *disk) taken() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	steps := strings.Join(d.steps, " ")
	d.steps = nil
	return steps
}

// on returns the options of a log in dir on the disk d.
func on(dir string, d *disk) statelog.Options {
	o := options(dir)
	o.Before = d.before
	return o
}

// The agent is killed before some step on the disk: for each step, the test has copied the folder as it was. The next
// agent reads what the last finished write or the current one has stored, and leaves no temporary file.
func TestACrashAtAnyStepKeepsTheLastWrite(t *testing.T) {
	dir := t.TempDir()
	var d disk
	var folders []string // copies of the folder, one from before each step
	d.set(func(string, string) error {
		folder := t.TempDir()
		folders = append(folders, folder)
		return os.CopyFS(folder, os.DirFS(dir))
	})
	l := locked(t, on(dir, &d))
	type state struct {
		first   int // the index of the first step of the call that leads to the state
		entries node.Entries
	}
	states := []state{{}}
	do := func(write func(node.Entries) *call.Future[struct{}], s *node.Shutdown, pods ...*node.Pod) {
		first := len(folders)
		require.NoError(t, await(t, write(entries(s, pods...))))
		states = append(states, state{first: first, entries: read(t, dir).Entries})
	}
	contents(t, l)
	// Each call leads to another state.
	do(l.Begin, shutdown(1), pod("a"), pod("b"))
	do(l.Append, nil, signalled("a"))
	do(l.Append, nil, ended("a"), signalled("b"))
	do(func(node.Entries) *call.Future[struct{}] { return l.Sync() }, nil)
	do(l.Begin, shutdown(2), ended("a"))
	do(l.Append, nil, pod("c"))
	closed(t, l)
	require.Greater(t, len(folders), 10, "steps")
	for step, folder := range folders {
		i := 0 // the index of the newest state whose call had begun
		for i+1 < len(states) && states[i+1].first <= step {
			i++
		}
		next := locked(t, options(folder))
		found := contents(t, next)
		require.Empty(t, found.Errs)
		require.Contains(t, []node.Entries{states[max(i-1, 0)].entries, states[i].entries}, found.Entries, "step %d", step)
		require.NoError(t, await(t, next.Append(entriesOfPods(pod("d")))))
		closed(t, next)
		require.Equal(t, entries(found.Entries.Shutdown, append(found.Entries.Pods, pod("d"))...), read(t, folder).Entries)
		left, err := filepath.Glob(filepath.Join(folder, ".tmp-*"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// Begin writes a new log, which replaces the old one. The new log is synced before that only if the old one has a final
// status that may be pending, which is that of a signalled pod without Told: a power cut must not lose it.
func TestOnlyPendingStatusesAreSyncedBeforeAReplacement(t *testing.T) {
	var d disk
	l := locked(t, on(t.TempDir(), &d))
	contents(t, l)
	require.Equal(t, "lock read read", d.taken())
	for _, test := range []struct {
		do    func() *call.Future[struct{}]
		steps string
	}{
		{func() *call.Future[struct{}] { return l.Begin(entries(shutdown(1), pod("a"))) }, "write rename"},
		{func() *call.Future[struct{}] { return l.Append(entriesOfPods(signalled("a"))) }, "write"},
		{l.Sync, "sync"},
		{func() *call.Future[struct{}] { return l.Begin(entries(shutdown(2), ended("a"))) }, "write sync rename"}, // a is pending
		{func() *call.Future[struct{}] {
			told := ended("a")
			told.Told = true
			return l.Append(entriesOfPods(told))
		}, "write"},
		{func() *call.Future[struct{}] { return l.Begin(entries(shutdown(3))) }, "write rename"},
		{func() *call.Future[struct{}] { return l.Append(entriesOfPods(ended("b"))) }, "write"},
		{func() *call.Future[struct{}] { return l.Begin(entries(shutdown(4))) }, "write sync rename"}, // b is pending
		{func() *call.Future[struct{}] { return l.Begin(entries(shutdown(5))) }, "write rename"},
		{func() *call.Future[struct{}] { return l.SaveTimes(statelog.Times{}) }, "times"},
	} {
		require.NoError(t, await(t, test.do()))
		require.Equal(t, test.steps, d.taken())
	}
	closed(t, l)
	require.Equal(t, "sync", d.taken())
}

// One step on the disk (write, rename or sync) fails, so that a new log cannot replace the one with signalled pods. Each
// call returns the error, and the earlier entries stay. When the disk works again, the next call writes what is missing.
// Then writes fail again: Append and Close return the error. No temporary file is left.
func TestFailedWritesAreRepeated(t *testing.T) {
	for _, failing := range []string{"write", "rename", "sync"} {
		t.Run(failing, func(t *testing.T) {
			dir := t.TempDir()
			var d disk
			l := locked(t, on(dir, &d))
			require.NoError(t, await(t, l.Begin(entries(shutdown(1), signalled("a")))))
			before := read(t, dir).Entries
			d.set(func(step, path string) error {
				if step != failing {
					return nil
				}
				if path == logPath(dir) && step == "write" { // half of it was written
					f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
					require.NoError(t, err)
					_, err = f.WriteString(`{"pod":{"na`)
					require.NoError(t, errors.Join(err, f.Close()))
				}
				return errFull
			})
			err := await(t, l.Begin(entries(shutdown(1), signalled("a"), pod("b"))))
			require.ErrorIs(t, err, errFull)
			require.ErrorContains(t, err, "failed to store the shutdown state in "+logPath(dir)+": ")
			require.ErrorIs(t, await(t, l.Append(entriesOfPods(ended("a")))), errFull)
			require.ErrorIs(t, await(t, l.Sync()), errFull)
			require.Equal(t, before, read(t, dir).Entries)
			d.set(nil)
			require.NoError(t, await(t, l.Sync()), "it is retried")
			require.Equal(t, entries(shutdown(1), ended("a"), pod("b")), read(t, dir).Entries)
			d.set(func(step, _ string) error {
				if step == "write" {
					return errFull
				}
				return nil
			})
			require.ErrorIs(t, await(t, l.Append(entriesOfPods(signalled("b")))), errFull)
			require.ErrorIs(t, l.Close(time.Now()), errFull)
			left, err := filepath.Glob(filepath.Join(dir, ".tmp-*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// The disk is full. Close returns an error only if there was an entry that is lost.
func TestCloseWithoutEntriesIgnoresAFullDisk(t *testing.T) {
	d := disk{fault: func(step, _ string) error {
		if step == "lock" {
			return nil
		}
		return errFull
	}}
	l := locked(t, on(t.TempDir(), &d))
	require.ErrorIs(t, await(t, l.Begin(node.Entries{})), errFull)
	closed(t, l)

	l = locked(t, on(t.TempDir(), &d))
	require.ErrorIs(t, await(t, l.Append(entries(shutdown(1)))), errFull)
	require.ErrorIs(t, l.Close(time.Now().Add(time.Minute)), errFull)
}

// One operation of the disk hangs. All calls of the log return: Lock a second after the end of its context, and Close at
// the given time, with an error that names what hangs. The folder stays locked until the operation returns.
func TestAHangingDiskBlocksNoCaller(t *testing.T) {
	for hanging, named := range map[string]string{
		"lock":   "the locking of DIR",
		"read":   "the unlocking of DIR, the writing of DIR/" + logFile,
		"write":  "the unlocking of DIR, the writing of DIR/" + logFile,
		"rename": "the unlocking of DIR, the writing of DIR/" + logFile,
		"sync":   "the sync of DIR/" + logFile + ", the unlocking of DIR",
		"times":  "the unlocking of DIR, the writing of DIR/" + timesFile,
	} {
		t.Run(hanging, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				var d disk
				released := make(chan struct{})
				d.set(func(step, _ string) error {
					if step == hanging {
						<-released
					}
					return nil
				})
				l := statelog.New(on(dir, &d))
				begun := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				_, err := l.Lock(ctx)
				if hanging == "lock" {
					require.ErrorIs(t, err, call.ErrTimeSpent)
					require.Equal(t, (5+1)*time.Second, time.Since(begun), "the time of ctx, and a second to return")
				} else {
					require.NoError(t, err)
				}
				_, err = l.Read(ctx)
				if hanging == "read" {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.ErrorContains(t, err, "nothing is stored: failed to read "+logPath(dir)+": ")
				} else {
					require.NoError(t, err)
				}
				begun = time.Now()
				written := []*call.Future[struct{}]{l.Begin(entries(shutdown(1))), l.Sync(), l.SaveTimes(statelog.Times{}), l.Append(entriesOfPods(pod("b")))}
				require.Zero(t, time.Since(begun))
				synctest.Wait()
				if hanging == "sync" {
					require.NoError(t, await(t, written[3]), "a sync blocks no write")
				}
				err = l.Close(begun.Add(10 * time.Second))
				require.ErrorIs(t, err, call.ErrTimeSpent)
				require.Equal(t, 10*time.Second, time.Since(begun))
				for name := range strings.SplitSeq(strings.ReplaceAll(named, "DIR", dir), ", ") {
					require.ErrorContains(t, err, name)
				}
				var second *statelog.Log
				if hanging != "lock" {
					second = statelog.New(options(dir))
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					_, err = second.Lock(ctx)
					require.ErrorContains(t, err, "another agent uses it")
				}
				close(released)
				for i, future := range written {
					waitsForRead := hanging == "read" && i != 2   // all but SaveTimes
					waitsForWrite := hanging == "write" && i == 3 // Append waits for Begin
					if err := await(t, future); waitsForRead || waitsForWrite {
						require.ErrorIs(t, err, call.ErrTimeSpent, "waiting writes are dropped")
					}
				}
				synctest.Wait()
				third := locked(t, options(dir))
				closed(t, third)
			})
		})
	}
}

// The folder is removed, and every call fails. When the folder is there again, Close writes what could not be written.
func TestEveryCallFailsWithoutTheFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	_, err := statelog.New(options(dir)).Lock(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, os.Mkdir(dir, 0o700))
	l := locked(t, options(dir))
	contents(t, l)
	require.NoError(t, os.RemoveAll(dir))
	require.ErrorIs(t, await(t, l.Begin(entries(shutdown(1)))), fs.ErrNotExist)
	require.ErrorIs(t, await(t, l.Append(entriesOfPods(pod("a")))), fs.ErrNotExist)
	require.ErrorIs(t, await(t, l.Sync()), fs.ErrNotExist)
	require.ErrorIs(t, await(t, l.SaveTimes(statelog.Times{})), fs.ErrNotExist)
	require.NoError(t, os.Mkdir(dir, 0o700))
	closed(t, l)
	require.Equal(t, entries(shutdown(1), pod("a")), read(t, dir).Entries)
}
