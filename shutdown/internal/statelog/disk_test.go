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

// disk is a disk that can be made to fail or hang, by Options.Before. The zero value does neither.
type disk struct {
	mu    sync.Mutex
	steps []string                      // since the last call of newSteps
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

// setFault replaces the fault; nil: the disk works.
func (d *disk) setFault(fault func(step, path string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = fault
}

// hang makes a step hang until release is called.
func (d *disk) hang(hanging string) (release func()) {
	released := make(chan struct{})
	d.setFault(func(step, _ string) error {
		if step == hanging {
			<-released
		}
		return nil
	})
	return func() { close(released) }
}

// newSteps returns the steps since the last call of newSteps, such as "write rename".
func (d *disk) newSteps() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	steps := strings.Join(d.steps, " ")
	d.steps = nil
	return steps
}

// on returns the options of a log whose folder is dir, on the disk d.
func on(dir string, d *disk) statelog.Options {
	o := options(dir)
	o.Before = d.before
	return o
}

// requireNoTemporaryFile requires that no interrupted write has left its temporary file in the folder.
func requireNoTemporaryFile(t *testing.T, dir string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, ".tmp-*"))
	require.NoError(t, err)
	require.Empty(t, found)
}

// The agent is killed before some step on the disk: for each step, the test has copied the folder as it was. The next
// agent reads what the last finished write or the current one has stored, and leaves no temporary file.
func TestACrashAtAnyStepKeepsTheLastWrite(t *testing.T) {
	dir := t.TempDir()
	var d disk
	var folders []string // copies of the folder, one from before each step
	d.setFault(func(string, string) error {
		folder := t.TempDir()
		folders = append(folders, folder)
		return os.CopyFS(folder, os.DirFS(dir))
	})
	l := openLog(t, on(dir, &d))
	contentsOf(t, l) // now the log is read
	type state struct {
		steps   int // how many steps have led to the state
		entries node.Entries
	}
	states := []state{{steps: len(folders)}} // after each call
	finish := func(written *call.Future[struct{}]) {
		requireWritten(t, written)
		states = append(states, state{steps: len(folders), entries: nextAgentReads(t, dir).Entries})
	}
	finish(l.Begin(entries(shutdown(1), pod("a"), pod("b"))))
	finish(l.Append(entriesOfPods(signalled("a"))))
	finish(l.Append(entriesOfPods(ended("a"), signalled("b"))))
	finish(l.Sync())
	finish(l.Begin(entries(shutdown(2), ended("a"))))
	finish(l.Append(entriesOfPods(pod("c"))))
	closeLog(t, l)
	require.Greater(t, len(folders), 10, "steps")

	for step, folder := range folders {
		finished := 0 // the index of the newest state that was reached before this step
		for finished+1 < len(states) && states[finished+1].steps <= step {
			finished++
		}
		current := min(finished+1, len(states)-1)

		next := openLog(t, options(folder))
		found := contentsOf(t, next)
		require.Empty(t, found.Errs)
		require.Contains(t, []node.Entries{states[finished].entries, states[current].entries}, found.Entries, "step %d", step)
		requireWritten(t, next.Append(entriesOfPods(pod("d"))))
		closeLog(t, next)
		require.Equal(t, entries(found.Entries.Shutdown, append(found.Entries.Pods, pod("d"))...), nextAgentReads(t, folder).Entries)
		requireNoTemporaryFile(t, folder)
	}
}

// Begin writes a new log, which replaces the old one. The new log is synced before that only if the old one has a final
// status that may be pending, which is that of a signalled pod without StatusAccepted: a power cut must not lose it.
func TestOnlyPendingStatusesAreSyncedBeforeAReplacement(t *testing.T) {
	var d disk
	l := openLog(t, on(t.TempDir(), &d))
	contentsOf(t, l)
	require.Equal(t, "lock read read", d.newSteps(), "the log and the kubelet's file are read")
	requireSteps := func(steps string, written *call.Future[struct{}]) {
		t.Helper()
		requireWritten(t, written)
		require.Equal(t, steps, d.newSteps())
	}
	requireSteps("write rename", l.Begin(entries(shutdown(1), pod("a"))))
	requireSteps("write", l.Append(entriesOfPods(signalled("a"))))
	requireSteps("sync", l.Sync())
	requireSteps("write sync rename", l.Begin(entries(shutdown(2), ended("a")))) // the status of a is pending
	accepted := ended("a")
	accepted.StatusAccepted = true
	requireSteps("write", l.Append(entriesOfPods(accepted)))
	requireSteps("write rename", l.Begin(entries(shutdown(3))))
	requireSteps("write", l.Append(entriesOfPods(ended("b"))))
	requireSteps("write sync rename", l.Begin(entries(shutdown(4)))) // the status of b is pending
	requireSteps("write rename", l.Begin(entries(shutdown(5))))
	requireSteps("times", l.SaveTimes(statelog.Times{}))
	closeLog(t, l)
	require.Equal(t, "sync", d.newSteps())
}

// A log has a signalled pod, so Begin writes, syncs and renames the new log that replaces it. One of these steps on the disk
// fails. Each call returns the error, and the earlier entries stay. When the disk works again, the next call writes what is
// missing. No temporary file is left.
func TestFailedWritesAreRepeated(t *testing.T) {
	for _, failing := range []string{"write", "rename", "sync"} {
		t.Run(failing, func(t *testing.T) {
			dir := t.TempDir()
			var d disk
			l := openLog(t, on(dir, &d))
			requireWritten(t, l.Begin(entries(shutdown(1), signalled("a"))))
			before := nextAgentReads(t, dir).Entries

			d.setFault(func(step, path string) error {
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
			require.Equal(t, before, nextAgentReads(t, dir).Entries)

			d.setFault(nil) // the disk works again
			requireWritten(t, l.Sync())
			require.Equal(t, entries(shutdown(1), ended("a"), pod("b")), nextAgentReads(t, dir).Entries)
			closeLog(t, l)
			requireNoTemporaryFile(t, dir)
		})
	}
}

// The disk is full for 1.2 s. Two writes fail at 0 s, and the log repeats them every 500 ms: in vain at 0.5 s and 1 s, and with
// success at 1.5 s. Options.Wrote is called for each of these five attempts. After Close nothing is repeated.
func TestTheLogRepeatsAFailedWrite(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var d disk
		d.setFault(func(step, _ string) error {
			if step == "write" {
				return errFull
			}
			return nil
		})
		o, attempts := on(dir, &d), make(chan error, 10)
		o.Wrote = func(err error) { attempts <- err }
		l := openLog(t, o)
		require.ErrorIs(t, await(t, l.Append(entries(shutdown(1)))), errFull)
		require.ErrorIs(t, await(t, l.Append(entriesOfPods(pod("a")))), errFull)

		<-time.After(1200 * time.Millisecond)
		d.setFault(nil)
		<-time.After(time.Second)
		require.Len(t, attempts, 5, "the two calls, and three repetitions")
		for _, isFull := range []bool{true, true, true, true, false} {
			require.Equal(t, isFull, errors.Is(<-attempts, errFull))
		}
		require.Equal(t, entries(shutdown(1), pod("a")), nextAgentReads(t, dir).Entries)

		closeLog(t, l)
		<-time.After(time.Minute)
		require.Empty(t, attempts)
	})
}

// fullDisk returns a disk on which the folder can be locked, but nothing can be read or written.
func fullDisk() *disk {
	return &disk{fault: func(step, _ string) error {
		if step == "lock" {
			return nil
		}
		return errFull
	}}
}

// The disk is full, but Close returns no error, because there are no entries that are lost.
func TestCloseWithoutEntriesIgnoresAFullDisk(t *testing.T) {
	l := openLog(t, on(t.TempDir(), fullDisk()))
	require.ErrorIs(t, await(t, l.Begin(node.Entries{})), errFull)
	closeLog(t, l)
}

// The disk is full, and an entry was not written. Both Append and Close return the error.
func TestCloseReturnsTheErrorOfAFullDisk(t *testing.T) {
	l := openLog(t, on(t.TempDir(), fullDisk()))
	require.ErrorIs(t, await(t, l.Append(entries(shutdown(1)))), errFull)
	require.ErrorIs(t, l.Close(time.Now().Add(time.Minute)), errFull)
}

// The disk hangs while Lock locks the folder. All calls return: Lock a second after the end of its context, Read and writes
// at once and without an error, because Lock has returned it, and Close at the given time. When the disk works again, the
// folder is free.
func TestADiskThatHangsInLockBlocksNoCaller(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var d disk
		release := d.hang("lock")
		l := statelog.New(on(dir, &d))
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := l.Lock(ctx)
		require.ErrorIs(t, err, call.ErrTimeSpent)
		require.Equal(t, (5+1)*time.Second, time.Since(begun), "ctx has 5 s")
		require.Equal(t, statelog.Contents{}, contentsOf(t, l))

		begun = time.Now()
		requireWritten(t, l.Begin(entries(shutdown(1))))
		requireWritten(t, l.Sync())
		require.Zero(t, time.Since(begun))

		err = l.Close(begun.Add(10 * time.Second))
		require.ErrorIs(t, err, call.ErrTimeSpent)
		require.ErrorContains(t, err, "the locking of "+dir)
		require.Equal(t, 10*time.Second, time.Since(begun))

		release()
		synctest.Wait()
		closeLog(t, openLog(t, options(dir)))
	})
}

// One operation of the disk hangs. All calls of the log return: Read when its context ends, writes at once, and Close at the
// given time, 10 s later, with an error that names what hangs. The writes that wait for the operation are dropped. The folder
// stays locked until the operation returns.
func TestAHangingDiskBlocksNoCaller(t *testing.T) {
	for hanging, named := range map[string][]string{
		"read":   {"the unlocking of DIR", "the writing of DIR/" + logFile},
		"write":  {"the unlocking of DIR", "the writing of DIR/" + logFile},
		"rename": {"the unlocking of DIR", "the writing of DIR/" + logFile},
		"sync":   {"the unlocking of DIR", "the sync of DIR/" + logFile},
		"times":  {"the unlocking of DIR", "the writing of DIR/" + timesFile},
	} {
		t.Run(hanging, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				var d disk
				release := d.hang(hanging)
				l := openLog(t, on(dir, &d))
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				_, err := l.Read(ctx)
				if hanging == "read" {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					require.ErrorContains(t, err, "nothing is stored: failed to read "+logPath(dir)+": ")
				} else {
					require.NoError(t, err)
				}

				// The writes return at once.
				begun := time.Now()
				replaced, synced := l.Begin(entries(shutdown(1))), l.Sync()
				l.SaveTimes(statelog.Times{})
				appended := l.Append(entriesOfPods(pod("b")))
				require.Zero(t, time.Since(begun))

				// Close returns at the given time, and the writes that wait are dropped.
				err = l.Close(begun.Add(10 * time.Second))
				require.ErrorIs(t, err, call.ErrTimeSpent)
				require.Equal(t, 10*time.Second, time.Since(begun))
				for _, name := range named {
					require.ErrorContains(t, err, strings.ReplaceAll(name, "DIR", dir))
				}
				dropped := map[string][]*call.Future[struct{}]{ // Begin itself hangs in write and in rename
					"read": {replaced, synced, appended}, "write": {synced, appended}, "rename": {synced, appended},
				}[hanging]
				for _, written := range dropped {
					require.ErrorIs(t, await(t, written), call.ErrTimeSpent)
				}
				if hanging == "sync" {
					requireWritten(t, appended)
				}

				// The folder stays locked until the operation returns.
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err = statelog.New(options(dir)).Lock(ctx)
				require.ErrorContains(t, err, "another agent uses it")
				release()
				synctest.Wait()
				closeLog(t, openLog(t, options(dir)))
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
	l := openLog(t, options(dir))
	contentsOf(t, l) // now the log is read
	require.NoError(t, os.RemoveAll(dir))
	require.ErrorIs(t, await(t, l.Begin(entries(shutdown(1)))), fs.ErrNotExist)
	require.ErrorIs(t, await(t, l.Append(entriesOfPods(pod("a")))), fs.ErrNotExist)
	require.ErrorIs(t, await(t, l.Sync()), fs.ErrNotExist)
	require.ErrorIs(t, await(t, l.SaveTimes(statelog.Times{})), fs.ErrNotExist)

	require.NoError(t, os.Mkdir(dir, 0o700))
	closeLog(t, l)
	require.Equal(t, entries(shutdown(1), pod("a")), nextAgentReads(t, dir).Entries)
}
