//go:build go1.25

package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/store"
)

// inBubble runs a test with a store on a disk of the test. The folder is locked.
func inBubble(t *testing.T, test func(t *testing.T, s *store.Store, d *disk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		o := options(t.TempDir())
		o.Write = d.write
		test(t, locked(t, o), d)
	})
}

// numbered returns the content of a record that can be told from others.
func numbered(n int) func() store.Content { return content(store.Record{Done: n}) }

// numbers returns the numbers of the records that were written.
func numbers(t *testing.T, d *disk) (all []int) {
	t.Helper()
	for _, r := range d.records(t) {
		all = append(all, r.Done)
	}
	return all
}

func isDone(saved *call.Future[struct{}]) bool {
	synctest.Wait()
	select {
	case <-saved.Done():
		return true
	default:
		return false
	}
}

// Writes are made one after the other. Of those that wait only the newest is made, and all who
// wait get its result.
func TestTheLatestWins(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store, d *disk) {
		d.before = func(string) error { <-time.After(time.Second); return nil }
		began := time.Now()
		first := s.Save(0, numbered(1))
		synctest.Wait()
		second, third := s.Save(0, numbered(2)), s.Save(0, numbered(3))
		require.NoError(t, await(t, first))
		require.Equal(t, time.Second, time.Since(began))
		require.False(t, isDone(second))
		require.NoError(t, await(t, second))
		require.NoError(t, await(t, third))
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, []int{1, 3}, numbers(t, d))
		require.Equal(t, 1, d.most)
		require.NoError(t, s.Close(time.Now()))
	})
}

// A write is made after its lag. A newer one with less lag makes it earlier, one with more does
// not put it off. The content is asked for when the write begins.
func TestLag(t *testing.T) {
	for _, test := range []struct{ second, takes time.Duration }{{time.Hour, time.Minute}, {3 * time.Second, 5 * time.Second}, {0, 2 * time.Second}} {
		inBubble(t, func(t *testing.T, s *store.Store, d *disk) {
			began := time.Now()
			first := s.Save(time.Minute, numbered(1))
			<-time.After(2 * time.Second)
			second := s.Save(test.second, func() store.Content { return numbered(int(time.Since(began).Seconds()))() })
			require.NoError(t, await(t, first))
			require.True(t, isDone(second))
			require.Equal(t, test.takes, time.Since(began))
			require.Equal(t, []int{int(test.takes.Seconds())}, numbers(t, d))
			require.NoError(t, s.Close(time.Now()))
		})
	}
}

// A write that fails is told to those who wait. The next one is made all the same.
func TestWriteThatFails(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store, d *disk) {
		d.before = func(string) error { return errFull }
		err := await(t, s.Save(0, numbered(1)))
		require.ErrorIs(t, err, errFull)
		require.ErrorContains(t, err, "failed to store the shutdown state: ")
		require.ErrorIs(t, await(t, s.SaveTimes(store.Times{})), errFull)
		d.before = nil
		require.NoError(t, await(t, s.Save(0, numbered(2))))
		require.Equal(t, []int{2}, numbers(t, d))
		require.NoError(t, s.Close(time.Now()), "the futures had the errors")
	})
}

// If it cannot be stored that a shutdown was cancelled, the old file goes: it says that the
// shutdown goes on.
func TestCancelledThatCannotBeStored(t *testing.T) {
	for _, cancelled := range []bool{true, false} {
		inBubble(t, func(t *testing.T, s *store.Store, d *disk) {
			var path string
			d.before = func(of string) error { path = of; return errFull }
			c := content(store.Record{Report: store.Report{Cancelled: cancelled}})
			require.ErrorIs(t, await(t, s.Save(0, c)), errFull, "without an old file")
			require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
			require.ErrorIs(t, await(t, s.Save(0, c)), errFull)
			if cancelled {
				require.NoFileExists(t, path)
			} else {
				require.FileExists(t, path)
			}
			if cancelled {
				require.NoError(t, os.MkdirAll(filepath.Join(path, "x"), 0o700))
				require.ErrorContains(t, await(t, s.Save(0, c)), "failed to remove a shutdown state that is no longer true")
			}
			require.NoError(t, s.Close(time.Now()))
		})
	}
}

// The kubelet's file has a writer of its own, which waits for no record.
func TestTimesAreWrittenBesideTheRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store, d *disk) {
		over := make(chan struct{})
		d.before = func(path string) error {
			if strings.HasSuffix(path, store.RecordFile) {
				<-over
			}
			return nil
		}
		began, record := time.Now(), s.Save(0, numbered(1))
		first, second := s.SaveTimes(store.Times{StartTime: at(1)}), s.SaveTimes(store.Times{StartTime: at(1), EndTime: at(2)})
		require.NoError(t, await(t, first))
		require.NoError(t, await(t, second))
		require.Less(t, time.Since(began), 100*time.Millisecond)
		require.False(t, isDone(record))
		require.Len(t, d.written, 1)
		close(over)
		require.NoError(t, s.Close(time.Now().Add(time.Minute)))
	})
}

// Close makes what waits at once. Afterwards nothing is stored, and another agent has the folder.
func TestClose(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store, d *disk) {
		began := time.Now()
		record, times := s.Save(time.Hour, numbered(1)), s.SaveTimes(store.Times{})
		require.NoError(t, s.Close(began.Add(time.Minute)))
		require.True(t, isDone(record))
		require.True(t, isDone(times))
		require.Zero(t, time.Since(began))
		require.Len(t, d.written, 2)
		require.ErrorContains(t, await(t, s.Save(0, numbered(2))), "the store is closed")
		require.ErrorContains(t, await(t, s.SaveTimes(store.Times{})), "the store is closed")
		require.NoError(t, s.Close(time.Now()), "again")
		require.Len(t, d.written, 2)
	})
}

// Close waits for a slow disk until its time, also for the second write of each file.
func TestCloseOfASlowDisk(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store, d *disk) {
		d.before = func(string) error { <-time.After(4 * time.Second); return nil }
		began := time.Now()
		s.Save(0, numbered(1))
		synctest.Wait()
		s.Save(0, numbered(2))
		require.NoError(t, s.Close(began.Add(10*time.Second)))
		require.Equal(t, 8*time.Second, time.Since(began))
		require.Equal(t, []int{1, 2}, numbers(t, d))
	})
}

// Nothing hangs Close, whichever write of whichever file hangs. Its error names what does. What
// has not begun is dropped and told; the folder stays locked until the disk has come back, and
// nothing is written then.
func TestCloseOfADiskThatHangs(t *testing.T) {
	for name, test := range map[string]struct {
		hangs string // what the path ends in
		first int    // the first write of that file that hangs
		names []string
	}{
		"record":              {store.RecordFile, 1, []string{store.RecordFile}},
		"record, the second":  {store.RecordFile, 2, []string{store.RecordFile}},
		"times":               {store.TimesFile, 1, []string{store.TimesFile}},
		"times, the second":   {store.TimesFile, 2, []string{store.TimesFile}},
		"both":                {"", 1, []string{store.RecordFile, store.TimesFile}},
		"both, in the second": {"", 2, []string{store.RecordFile, store.TimesFile}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *store.Store, d *disk) {
				over, began := make(chan struct{}), make(chan string, 100)
				count := map[string]int{}
				d.before = func(path string) error {
					d.mu.Lock()
					count[path]++
					hangs := strings.HasSuffix(path, test.hangs) && count[path] >= test.first
					d.mu.Unlock()
					began <- path
					if hangs {
						<-over
					}
					return nil
				}
				var saved []*call.Future[struct{}]
				for n := range 4 {
					saved = append(saved, s.Save(0, numbered(n)), s.SaveTimes(store.Times{StartTime: at(n)}))
					<-time.After(time.Second)
				}
				start := time.Now()
				err := s.Close(start.Add(10 * time.Second))
				require.Equal(t, 10*time.Second, time.Since(start))
				require.ErrorIs(t, err, call.ErrTimeSpent)
				for _, file := range []string{store.RecordFile, store.TimesFile} {
					require.Equal(t, strings.Contains(fmt.Sprint(test.names), file), strings.Contains(err.Error(), "/"+file), "%v", err)
				}
				var dropped int
				for _, saved := range saved {
					if isDone(saved) && await(t, saved) != nil {
						require.ErrorIs(t, await(t, saved), call.ErrTimeSpent)
						dropped++
					}
				}
				require.Equal(t, (4-test.first)*len(test.names), dropped)

				writes := len(began)
				close(over)
				synctest.Wait()
				require.Len(t, began, writes, "no write has begun since")
				require.NoError(t, s.Close(time.Now()), "nothing hangs any more")
			})
		})
	}
}

// A write that hangs keeps the folder from the next agent, because it may still replace a file.
func TestFolderStaysLockedByAWriteThatHangs(t *testing.T) {
	for _, save := range []func(*store.Store){
		func(s *store.Store) { s.Save(0, numbered(1)) },
		func(s *store.Store) { s.SaveTimes(store.Times{}) },
	} {
		synctest.Test(t, func(t *testing.T) {
			over := make(chan struct{})
			o := options(t.TempDir())
			o.Write = (&disk{before: func(string) error { <-over; return nil }}).write
			s, next := locked(t, o), store.New(options(o.Dir))
			save(s)
			require.Error(t, s.Close(time.Now().Add(time.Second)))
			time.AfterFunc(5*time.Second, func() { close(over) })
			began := time.Now()
			_, err := next.Lock(t.Context())
			require.NoError(t, err)
			require.InDelta(t, 5*time.Second, time.Since(began), float64(100*time.Millisecond))
			require.NoError(t, next.Close(time.Now()))
		})
	}
}

// A disk that comes back just as Close gives it up makes the write that waits, or it is dropped
// and told. Once Close has returned no write begins.
func TestDiskThatComesBackAsCloseEnds(t *testing.T) {
	for range 100 {
		inBubble(t, func(t *testing.T, s *store.Store, d *disk) {
			var begun atomic.Int32
			d.before = func(string) error { begun.Add(1); <-time.After(5 * time.Second); return nil }
			first := s.Save(0, numbered(1))
			synctest.Wait()
			second := s.Save(0, numbered(2))
			err := s.Close(time.Now().Add(5 * time.Second))
			require.ErrorIs(t, err, call.ErrTimeSpent)
			require.NoError(t, await(t, first))
			if await(t, second) == nil {
				require.Equal(t, int32(2), begun.Load())
			}
			require.NoError(t, s.Close(time.Now().Add(time.Minute)))
			require.Len(t, d.written, int(begun.Load()))
		})
	}
}

// However many ask for a write while the disk hangs, one waits.
func TestWritesThatWaitTakeNoMemory(t *testing.T) {
	inBubble(t, func(t *testing.T, s *store.Store, d *disk) {
		over := make(chan struct{})
		d.before = func(string) error { <-over; return nil }
		s.Save(0, numbered(0))
		synctest.Wait()
		waits := s.Save(0, numbered(1))
		for range 100 {
			require.Same(t, waits, s.Save(0, nil))
		}
		s.Save(0, numbered(2))
		close(over)
		require.NoError(t, await(t, waits))
		require.Equal(t, []int{0, 2}, numbers(t, d))
		require.NoError(t, s.Close(time.Now()))
	})
}

// Without a folder, a lock or a boot ID nothing is stored, and nobody waits.
func TestNothingIsStored(t *testing.T) {
	none := store.New(store.Options{Times: true})
	_, err := none.Lock(t.Context())
	require.NoError(t, err)
	save(t, none, example())
	require.NoError(t, await(t, none.SaveTimes(store.Times{})))
	require.NoError(t, none.BootErr())
	require.NoError(t, none.Close(time.Now()))

	dir := t.TempDir()
	noBoot := locked(t, store.Options{Dir: dir, Times: true, Boot: func() (string, time.Duration, error) { return "", 0, errors.ErrUnsupported }})
	require.ErrorIs(t, noBoot.BootErr(), errors.ErrUnsupported)
	save(t, noBoot, example())
	require.NoError(t, await(t, noBoot.SaveTimes(store.Times{})))
	require.NoError(t, noBoot.Close(time.Now().Add(time.Minute)))
	require.NoFileExists(t, filepath.Join(dir, store.RecordFile))
	require.FileExists(t, filepath.Join(dir, store.TimesFile))

	absent := store.New(options(filepath.Join(dir, "absent")))
	_, err = absent.Lock(t.Context())
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "nothing is stored")
	save(t, absent, example())
	require.NoError(t, absent.Close(time.Now()))
	require.NoError(t, store.New(options(dir)).Close(time.Now().Add(time.Minute)), "never locked")
}

// A sync of the folder that fails is told at the end. It is not put off then.
func TestFolderThatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		require.NoError(t, os.Mkdir(dir, 0o700))
		s := locked(t, options(dir))
		save(t, s, example())
		require.NoError(t, os.RemoveAll(dir))
		began := time.Now()
		require.ErrorIs(t, s.Close(began.Add(time.Minute)), os.ErrNotExist)
		require.Zero(t, time.Since(began))
	})
}

// The removal of a cancelled shutdown that cannot be stored is synced too.
func TestRemovalIsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		require.NoError(t, os.Mkdir(dir, 0o700))
		s := locked(t, options(dir))
		save(t, s, example())
		<-time.After(time.Second) // the write is synced
		r := example()
		r.Timetable = json.RawMessage("{")
		require.Error(t, await(t, s.Save(0, content(r))))
		require.NoFileExists(t, filepath.Join(dir, store.RecordFile))
		require.NoError(t, os.RemoveAll(dir))
		require.ErrorIs(t, s.Close(time.Now().Add(time.Minute)), os.ErrNotExist)
	})
}

// Times are converted to those since the boot and back.
func TestSinceBoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.New(options(t.TempDir()))
		require.Equal(t, "one", s.BootID())
		now := time.Now()
		for since, at := range map[time.Duration]time.Time{
			time.Hour:                  now,
			time.Hour + 10*time.Second: now.Add(10 * time.Second),
			50 * time.Minute:           now.Add(-10 * time.Minute),
			0:                          now.Add(-time.Hour),
		} {
			require.Equal(t, since, s.SinceBoot(at))
			require.Zero(t, s.TimeOf(since).Sub(at))
		}
		require.Equal(t, time.Duration(1), s.SinceBoot(now.Add(-2*time.Hour)), "0 would mean that there is none")
		require.Equal(t, time.Duration(1), s.SinceBoot(time.Time{}))
		require.Equal(t, time.Duration(math.MaxInt64), s.SinceBoot(now.Add(math.MaxInt64)))
		require.True(t, s.TimeOf(math.MaxInt64).After(now.AddDate(290, 0, 0)))
	})
}
