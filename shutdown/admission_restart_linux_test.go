//go:build go1.25

package shutdown_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// Agents start and end, one after the other, while an unfinished shutdown is on record and no
// host can be asked about it. Pods ask all of the agents at any time. None is admitted before the
// time of that shutdown is over; then all are.
func TestAdmissionsOfAgentsThatComeAndGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, progressFile)
	first := newHostAgent(t, dir)
	first.killer.Default = shutdowntest.Behaviour{Hangs: true}
	first.run()
	first.host.Announce(shutdown.Event{})
	require.Eventually(t, func() bool { return fileContains(path, "uid-web") }, 10*time.Second, time.Millisecond)
	require.NoError(t, first.end())
	var stored struct{ HMonotonicNanoseconds time.Duration }
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &stored))
	over := stored.HMonotonicNanoseconds

	asked := 0
	for sinceBoot(t) < over-time.Second {
		a := newHostAgent(t, dir)
		a.host.ConnectErr = errors.New("no bus")
		var asking sync.WaitGroup
		asking.Go(func() {
			for range 1000 {
				admitted := a.m.Admit(nil).Admit
				if at := sinceBoot(t); admitted && at < over {
					t.Errorf("a pod got in %v too early", over-at)
				}
			}
		})
		a.run()
		asked += 1000
		asking.Wait()
		require.NoError(t, a.end())
		require.Empty(t, a.killer.Kills())
	}
	require.NotZero(t, asked)
	last := newHostAgent(t, dir)
	last.host.ConnectErr = errors.New("no bus")
	last.run()
	require.Eventually(t, func() bool { return sinceBoot(t) > over+100*time.Millisecond }, 10*time.Second, time.Millisecond)
	for range 10_000 {
		require.True(t, last.m.Admit(nil).Admit)
	}
	t.Logf("%d pods were refused", asked)
}

// sinceBoot returns CLOCK_MONOTONIC.
func sinceBoot(t *testing.T) time.Duration {
	t.Helper()
	var now unix.Timespec
	require.NoError(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	return time.Duration(now.Nano())
}
