//go:build go1.25

package shutdown_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The files of a state folder.
const (
	timesFile = "graceful_node_shutdown_state" // the kubelet's
	logFile   = "graceful_node_shutdown_log"
)

// boot is a boot of the machine, which began an hour before the time in began.
type boot struct {
	id    string
	began time.Time
	err   error // agents get this error instead of the ID and the time; nil: none
}

// sinceBoot returns the ID of the boot and the time since it, as agents read them.
func (b *boot) sinceBoot() (string, time.Duration, error) {
	return b.id, time.Since(b.began) + time.Hour, b.err
}

// runOnBoot starts a manager on a boot, and waits until it is ready.
func (n *node) runOnBoot(b *boot) { n.runOnDisk(b, nil) }

// runOnDisk starts a manager on a boot, and waits until it is ready. fault is called before each disk operation,
// which fails if fault returns an error; nil: no operation fails.
func (n *node) runOnDisk(b *boot, fault func(step string) error) {
	n.t.Helper()
	m, err := shutdown.NewManagerWith(n.opts, b.sinceBoot, func(step, _ string) error {
		if fault == nil {
			return nil
		}
		return fault(step)
	})
	require.NoError(n.t, err)
	n.start(m)
	<-m.Ready()
	synctest.Wait()
}

// startWithSlowLog starts a manager on a boot. Its Run needs the time in takes to read the state log. startWithSlowLog does not wait
// until the manager is ready.
func (n *node) startWithSlowLog(b *boot, takes time.Duration) {
	n.t.Helper()
	var isRunning atomic.Bool // NewManager reads the log too, but at once
	m, err := shutdown.NewManagerWith(n.opts, b.sinceBoot, func(step, path string) error {
		if isRunning.Load() && step == "read" && filepath.Base(path) == logFile {
			<-time.After(takes)
		}
		return nil
	})
	require.NoError(n.t, err)
	isRunning.Store(true)
	n.start(m)
	n.advance(time.Millisecond)
}

// crash ends the agent like kill -9: the next agent finds the state files as they are now, without what Run writes at its
// end. The next agent has a new killer.
func (n *node) crash() {
	n.t.Helper()
	files := map[string][]byte{}
	for _, name := range []string{timesFile, logFile} {
		data, err := os.ReadFile(filepath.Join(n.opts.StateDir, name))
		require.NoError(n.t, err)
		files[name] = data
	}
	n.end()
	for name, data := range files {
		require.NoError(n.t, os.WriteFile(filepath.Join(n.opts.StateDir, name), data, 0o644))
	}
	n.replaceKiller()
}

// webAndEtcd returns web, in the first bucket of 20 s, and etcd, in the second one of 10 s. Both have a grace
// period of 60 s, so that the buckets limit it.
func webAndEtcd() []*v1.Pod {
	return list(shutdowntest.Pod("web", regularPriority, 60), shutdowntest.Pod("etcd", criticalPriority, 60))
}

// fileContains reports whether a file exists and contains a text.
func fileContains(path, text string) bool {
	data, err := os.ReadFile(path)
	return err == nil && strings.Contains(string(data), text)
}

// Neither state file can be used. The agent admits pods, and LastReport has no report. The report of the next shutdown
// names both files, and that shutdown replaces them.
func TestUnusableStateFilesAreReportedAndReplaced(t *testing.T) {
	inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
		for _, file := range []string{timesFile, logFile} {
			require.NoError(t, os.WriteFile(filepath.Join(n.opts.StateDir, file), []byte(`{"version":7}`), 0o644))
		}
		n.runOnBoot(thisBoot)
		require.True(t, n.admitsNewPods())
		_, ok := n.m.LastReport()
		require.False(t, ok)
		n.announce()
		n.advance(time.Minute)
		named := strings.Join(n.lastReport().Errors, "\n")
		require.Contains(t, named, timesFile)
		require.Contains(t, named, logFile)
		n.end()
		n.runOnBoot(thisBoot)
		require.Len(t, n.lastReport().Pods, 2, "the report of that shutdown was stored")
	})
}

// The disk is full. Two shutdowns kill their pods and release the lock all the same. The report of each shutdown mentions the disk
// once. Errors are logged at the start and in each drain, and Run returns one.
func TestAFullDiskIsReportedOnceAndChangesNothing(t *testing.T) {
	static := staticPod()
	inBubbleWithState(t, append(webAndEtcd(), static), func(t *testing.T, n *node, thisBoot *boot) {
		n.opts.Reporter = &cluster{}
		n.runOnDisk(thisBoot, func(step string) error {
			if step == "write" {
				return syscall.ENOSPC
			}
			return nil
		})
		for range 2 {
			n.announce()
			n.advance(time.Minute)
			require.Zero(t, n.host.Held(), "the lock is released")
			require.Len(t, n.lastReport().Errors, 1)
			require.Contains(t, n.lastReport().Errors[0], "no space left on device")
			n.host.Cancel()
			n.advance(2 * time.Second)
			require.True(t, n.admits(static), "a static pod starts again, although the withdrawal of its status is not stored")
		}
		require.Len(t, n.log.errors(), 3, "at the start, and in each drain")
		require.ErrorIs(t, n.stopRun(), syscall.ENOSPC)
	})
}

// The agent cannot lock the state folder. It drains all the same, and writes nothing into the folder. The report of the first shutdown
// says so, and that of the second one does not repeat it.
func TestWithoutALockOnTheFolderNothingIsStored(t *testing.T) {
	inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
		n.runOnDisk(thisBoot, func(step string) error {
			if step == "lock" {
				return syscall.EROFS
			}
			return nil
		})
		n.announce()
		n.advance(time.Minute)
		require.Len(t, n.killer.Kills(), 2, "it drains all the same")
		require.Len(t, n.lastReport().Errors, 1)
		require.Contains(t, n.lastReport().Errors[0], "nothing is stored")
		require.NoFileExists(t, filepath.Join(n.opts.StateDir, logFile))
		n.host.Cancel()
		n.advance(2 * time.Second)
		n.announce()
		n.advance(time.Minute)
		require.Empty(t, n.lastReport().Errors, "it is said once")
	})
}

// A write of the log hangs. The kills wait 100 ms for it, because the log should name the pods before they are killed, and
// then begin all the same. The report says so.
func TestAHangingWriteDelaysTheKillsBy100ms(t *testing.T) {
	inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
		released := make(chan struct{})
		n.runOnDisk(thisBoot, func(step string) error {
			if step == "write" {
				<-released
			}
			return nil
		})
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 100*time.Millisecond, n.killedAfter("web", began))
		require.Contains(t, strings.Join(n.lastReport().Errors, "\n"), "the state log was not written within 100ms, killing pods anyway")
		close(released)
		n.advance(time.Second)
	})
}

// The disk is full for 3 s, during which a cancellation must be stored. The write is repeated, although no other entry follows.
// After 4 s the stored report says that the shutdown was cancelled.
func TestAFailedWriteIsRepeated(t *testing.T) {
	inBubbleWithState(t, noPods(), func(t *testing.T, n *node, thisBoot *boot) {
		var fullUntil time.Time
		n.runOnDisk(thisBoot, func(step string) error {
			if step == "write" && time.Now().Before(fullUntil) {
				return syscall.ENOSPC
			}
			return nil
		})
		n.announce()
		n.advance(time.Second)
		fullUntil = time.Now().Add(3 * time.Second)
		n.host.Cancel()
		n.advance(4 * time.Second)
		require.True(t, n.storedReport().Cancelled)
	})
}

// If the boot has no ID, only the kubelet's state file is written.
func TestWithoutABootIDOnlyTheKubeletsFileIsWritten(t *testing.T) {
	inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, _ *boot) {
		n.runOnBoot(&boot{err: errors.ErrUnsupported})
		n.announce()
		n.advance(time.Minute)
		require.Contains(t, n.lastReport().Errors[0], errors.ErrUnsupported.Error())
		n.end()
		require.FileExists(t, filepath.Join(n.opts.StateDir, timesFile))
		require.NoFileExists(t, filepath.Join(n.opts.StateDir, logFile))
	})
}

// The kubelet's state file has the start and the end of the shutdown. The end is zero while the shutdown is under way. The
// pods use the 20 s and 10 s of their buckets, so that the shutdown ends after 30 s.
func TestTheKubeletsFileHasTheTimesOfTheShutdown(t *testing.T) {
	inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(thisBoot)
		began := time.Now()
		requireTimes := func(end time.Time) {
			data, err := os.ReadFile(filepath.Join(n.opts.StateDir, timesFile))
			require.NoError(t, err)
			var stored map[string]time.Time
			require.NoError(t, json.Unmarshal(data, &stored))
			require.Len(t, stored, 2)
			require.True(t, stored["startTime"].Equal(began))
			require.True(t, stored["endTime"].Equal(end))
		}
		n.announce()
		n.advance(time.Second)
		requireTimes(time.Time{})
		n.advance(time.Minute)
		requireTimes(began.Add(30 * time.Second))
	})
}

// A drain syncs the log twice, at its beginning and at its end, and each sync takes 50 ms. The first one runs beside the kills of web
// and then etcd. So if each of them takes 5 s, only the second sync delays the release of the lock. If they end at once, the
// release may have to wait for both syncs.
func TestTheFirstSyncRunsBesideTheKills(t *testing.T) {
	const syncTakes = 50 * time.Millisecond
	for killTakes, bounds := range map[time.Duration]struct{ least, most time.Duration }{
		0:               {least: syncTakes, most: 2 * syncTakes},
		5 * time.Second: {least: (5+5)*time.Second + syncTakes, most: (5+5)*time.Second + syncTakes},
	} {
		inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
			n.killer.Default = shutdowntest.Behaviour{Takes: killTakes}
			n.runOnDisk(thisBoot, func(step string) error {
				if step == "sync" {
					<-time.After(syncTakes)
				}
				return nil
			})
			n.advance(time.Second)
			began := time.Now()
			n.announce()
			n.advance(time.Minute)
			released := n.releasedAfter(began)
			require.GreaterOrEqual(t, released, bounds.least)
			require.Less(t, released, bounds.most+20*time.Millisecond, "some time for the rest of the drain")
		})
	}
}

// The state log has pending statuses. The next agent needs 6 s to read it, but waits only 5 s. It then admits pods, drains without the
// log, and does not change it.
func TestALogThatCannotBeReadIsKept(t *testing.T) {
	inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
		next, before := n.leavePendingStatuses(thisBoot)
		n.startWithSlowLog(next, 6*time.Second)
		n.advance(4 * time.Second)
		require.False(t, n.admitsNewPods())
		n.advance(time.Second)
		require.True(t, n.admitsNewPods(), "5 s are over")

		n.advance(5 * time.Second)
		n.announce()
		n.advance(time.Minute)
		require.Len(t, n.killer.Kills(), 2, "the drain kills web and etcd")
		require.Contains(t, n.lastReport().Errors[0], "nothing is stored")
		n.end()
		require.Equal(t, before, n.storedLog())
	})
}

// With RequireStateDir, Run returns an error if it cannot read the state log in time.
func TestALogThatCannotBeReadEndsRunIfItIsRequired(t *testing.T) {
	inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
		next, before := n.leavePendingStatuses(thisBoot)
		n.opts.RequireStateDir = true
		n.startWithSlowLog(next, 6*time.Second)
		n.advance(time.Minute)
		require.ErrorContains(t, n.stopRun(), "nothing is stored")
		require.Equal(t, before, n.storedLog())
	})
}

// leavePendingStatuses runs an agent until the state log has pending statuses, and returns the next boot and the log.
func (n *node) leavePendingStatuses(thisBoot *boot) (next *boot, log string) {
	n.opts.Reporter = &cluster{unreachable: true}
	n.runOnBoot(thisBoot)
	n.announce()
	n.advance(time.Minute)
	n.end()
	n.host.SetPending(nil)
	n.replaceKiller()
	return &boot{id: "next", began: time.Now()}, n.storedLog()
}

// storedLog returns the content of the state log.
func (n *node) storedLog() string {
	n.t.Helper()
	data, err := os.ReadFile(filepath.Join(n.opts.StateDir, logFile))
	require.NoError(n.t, err)
	return string(data)
}

// The runtime is away when a shutdown is cancelled. web's kill fails every second for an hour: always with the same error, or each
// time with another text, because the error has the number of the attempt. The state log does not grow.
func TestAKillThatKeepsFailingDoesNotFillTheDisk(t *testing.T) {
	for name, text := range map[string]func(attempt int32) string{
		"the same error": func(int32) string { return "the runtime is away" },
		"changing texts": func(attempt int32) string { return fmt.Sprintf("request %04d: the runtime is away", attempt) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, webAndEtcd(), func(t *testing.T, n *node, thisBoot *boot) {
				var attempts atomic.Int32
				n.opts.Killer = shutdown.PodKillerFunc(func(context.Context, *v1.Pod, shutdown.KillRequest) (shutdown.KillResult, error) {
					return shutdown.KillResult{}, errors.New(text(attempts.Add(1)))
				})
				n.runOnBoot(thisBoot)
				n.announce()
				n.advance(3 * time.Second)
				n.host.Cancel()
				n.advance(time.Minute)
				sizeBefore := len(n.storedLog())
				n.advance(time.Hour)
				require.Greater(t, attempts.Load(), int32(3600))
				sizeAfter := len(n.storedLog())
				require.Equal(t, sizeBefore, sizeAfter)
			})
		})
	}
}

// Each kill of web fails with another text until the shutdown ends. The stored report has the last text, at which the kill is given up.
func TestTheErrorOfAKillThatIsGivenUpIsStored(t *testing.T) {
	inBubbleWithState(t, list(shutdowntest.Pod("web", regularPriority, 5)), func(t *testing.T, n *node, thisBoot *boot) {
		var attempts atomic.Int32
		n.opts.Killer = shutdown.PodKillerFunc(func(context.Context, *v1.Pod, shutdown.KillRequest) (shutdown.KillResult, error) {
			return shutdown.KillResult{}, fmt.Errorf("request %d: the runtime is away", attempts.Add(1))
		})
		n.runOnBoot(thisBoot)
		n.announce()
		n.advance(time.Minute)
		require.Greater(t, attempts.Load(), int32(1))
		lastText := fmt.Sprintf("request %d: the runtime is away", attempts.Load())
		require.Equal(t, lastText, n.lastReport().Pods[0].Error)
		require.Equal(t, lastText, n.storedReport().Pods[0].Error)
	})
}
