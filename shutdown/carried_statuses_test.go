//go:build unix && go1.25

package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// A node with many pods loses its power half a second after the first kills, before the record has
// each of them: the next agent sends the final statuses of all, because the bucket had begun.
func TestFinalStatusesOfABucketThatHadJustBegun(t *testing.T) {
	var pods []*v1.Pod
	for i := range 1500 {
		pods = append(pods, shutdowntest.Pod(fmt.Sprint("web-", i), 0, 5))
	}
	inBubbleWithState(t, pods, func(t *testing.T, n *node, one *boot) {
		c := &cluster{}
		n.opts.Reporter = c
		n.killer.Default = shutdowntest.Behaviour{Hangs: true}
		n.runOnBoot(one)
		n.announce()
		n.advance(500 * time.Millisecond)
		require.Len(t, n.killer.Kills(), len(pods))
		n.crash()
		n.host.SetPending(nil)
		n.runOnBoot(&boot{id: "next", began: time.Now()})
		n.advance(time.Minute)
		require.Len(t, c.flushedPods(), len(pods))
	})
}

// The next agent sends the final statuses that were not acknowledged, and the agent after it
// those that remain. After a reboot these include pods that had not ended, but not static pods,
// which run again. In the same boot they are only pods that are known to have ended. Their pods
// are not admitted before.
func TestFinalStatusesAreCarriedOver(t *testing.T) {
	ended := shutdowntest.Pod("ended", 0, 5)
	ended.Spec.Containers = []v1.Container{{Name: "main", Image: "secret"}}
	static := staticPod()
	for id, want := range map[string][]string{"one": {"ended", "static"}, "next": {"ended", "hangs"}} {
		t.Run(id, func(t *testing.T) {
			inBubbleWithState(t, list(ended, static, shutdowntest.Pod("hangs", 0, 5)), func(t *testing.T, n *node, one *boot) {
				c := &cluster{away: true}
				n.opts.Reporter = c
				n.killer.Pods = map[string]shutdowntest.Behaviour{"hangs": {Hangs: true}, "ended": {Status: &v1.PodStatus{Phase: v1.PodSucceeded}}}
				n.runOnBoot(one)
				n.announce()
				n.advance(time.Minute)
				n.crash()
				n.host.SetPending(nil)
				for range 2 { // the first agent cannot send either
					n.runOnBoot(&boot{id: id, began: time.Now()})
					n.advance(time.Second)
					require.Empty(t, c.flushedPods())
					require.False(t, n.m.Admit(ended).Admit, "it has ended for good")
					require.True(t, n.m.Admit(shutdowntest.Pod("other", 0, 5)).Admit)
					n.end()
				}
				n.runOnBoot(&boot{id: id, began: time.Now()})
				c.setAway(false)
				n.advance(2 * time.Second)
				require.Equal(t, want, c.flushedPods())
				require.True(t, n.m.Admit(ended).Admit)
				require.Equal(t, v1.PodSucceeded, c.final["ended"].Status.Phase, "as its killer had said")
				require.Equal(t, "main", c.final["ended"].Spec.Containers[0].Name)
				require.Empty(t, c.final["ended"].Spec.Containers[0].Image, "images are not stored")
				n.end()

				clear(c.final)
				n.runOnBoot(&boot{id: id, began: time.Now()})
				n.advance(2 * time.Second)
				require.Empty(t, c.flushedPods(), "it was acknowledged")
			})
		})
	}
}

// The agent of the next boot also deletes a pod that had not ended when the host went down.
func TestRemovalIsCarriedOver(t *testing.T) {
	inBubbleWithState(t, list(shutdowntest.Pod("hangs", 0, 5)), func(t *testing.T, n *node, one *boot) {
		c := &cluster{}
		n.opts.Reporter = c
		n.opts.Policy = func(shutdown.Kind) shutdown.PodPolicy { return shutdown.PolicyDelete }
		n.killer.Default = shutdowntest.Behaviour{Hangs: true, Deaf: true}
		n.runOnBoot(one)
		n.announce()
		n.advance(time.Minute)
		require.Empty(t, c.flushedPods())
		n.crash()
		n.host.SetPending(nil)
		n.runOnBoot(&boot{id: "next", began: time.Now()})
		n.advance(time.Second)
		require.Equal(t, []string{"hangs"}, c.flushedPods())
		require.NotNil(t, c.final["hangs"].DeletionTimestamp)
	})
}

// A pod that a cancelled shutdown has ended is not admitted before its final status is
// acknowledged.
func TestEndedPodsAreNotAdmitted(t *testing.T) {
	web := shutdowntest.Pod("web", 0, 5)
	inBubble(t, list(web), func(t *testing.T, n *node) {
		c := &cluster{away: true}
		n.opts.Reporter = c
		n.run()
		n.announce()
		n.host.Cancel()
		synctest.Wait()
		require.False(t, n.m.Admit(web).Admit)
		require.True(t, n.m.Admit(nil).Admit)
		c.setAway(false)
		n.advance(5 * time.Second)
		require.True(t, n.m.Admit(web).Admit)
	})
}

// An agent that is restarted during an unfinished shutdown admits no pod before the host's time
// is over.
func TestAdmissionOfARestartedAgent(t *testing.T) {
	inBubbleAfterCrash(t, func(t *testing.T, n *node, boot *boot) {
		n.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = errors.New("no bus") })
		var asking sync.WaitGroup
		for range 10 {
			m, err := shutdown.NewManagerOn(n.opts, boot.sinceBoot)
			require.NoError(t, err)
			for range 100 {
				asking.Go(func() {
					for range 10 {
						if m.Admit(nil).Admit {
							t.Error("a pod got in")
						}
					}
				})
			}
			n.start(m)
			n.advance(time.Second)
			asking.Wait()
			n.end()
		}
		m, err := shutdown.NewManagerOn(n.opts, boot.sinceBoot)
		require.NoError(t, err)
		n.advance(5 * time.Second)
		for range 10_000 {
			require.True(t, m.Admit(nil).Admit)
		}
	})
}

// A pod with a final status on record is refused from NewManager on, even without a host, and
// admitted once the former agent has sent the status.
func TestEndedPodsAreRefusedBeforeRun(t *testing.T) {
	dir := t.TempDir()
	web := shutdowntest.Pod("web", 0, 5)
	inBubble(t, list(web), func(t *testing.T, n *node) {
		c := &cluster{away: true}
		n.opts.StateDir, n.opts.Reporter = dir, c
		one := &boot{id: "one", began: time.Now()}
		n.runOnBoot(one)
		n.announce()
		n.advance(time.Minute)
		next := &boot{id: "next", began: time.Now()}
		m, err := shutdown.NewManagerOn(n.opts, next.sinceBoot)
		require.NoError(t, err)
		require.False(t, m.Admit(web).Admit)
		require.True(t, m.Admit(nil).Admit)
		c.setAway(false)
		n.advance(2 * time.Second)
		n.end()
		n.host.SetPending(nil)
		require.False(t, m.Admit(web).Admit, "the new manager has not read the state file again")
		n.start(m)
		synctest.Wait()
		require.True(t, m.Admit(web).Admit)
	})
}

// A pod whose final status is acknowledged only after the end of Run, by a call that ignores its
// context, is not admitted any more: the status is on record, and the next agent sends it.
func TestStatusThatIsAcknowledgedAfterRun(t *testing.T) {
	web := shutdowntest.Pod("web", 0, 5)
	inBubbleWithState(t, list(web), func(t *testing.T, n *node, one *boot) {
		n.opts.Reporter = &lateCluster{}
		n.runOnBoot(one)
		n.announce()
		n.host.Cancel()
		n.advance(time.Second)
		n.stop()
		n.stop = nil
		require.ErrorContains(t, <-n.ended, "Options.Reporter.FlushPod for pod default/web")
		n.advance(time.Minute)
		require.False(t, n.m.Admit(web).Admit)
		c := &cluster{}
		n.opts.Reporter = c
		n.runOnBoot(one)
		require.Equal(t, []string{"web"}, c.flushedPods())
		n.advance(time.Second)
		require.True(t, n.m.Admit(web).Admit)
	})
}

// An agent that another one keeps from the folder stores nothing: a pod is admitted once its final status
// is acknowledged.
func TestStatusOfAnAgentWithoutItsFolder(t *testing.T) {
	web := shutdowntest.Pod("web", 0, 5)
	inBubbleWithState(t, nil, func(t *testing.T, n *node, one *boot) {
		n.runOnBoot(one)
		c := &cluster{}
		other := n.startOther(list(web), one, func(other *node) { other.opts.Reporter = c })
		n.advance(time.Minute)
		other.announce()
		n.advance(time.Minute)
		other.host.Cancel()
		n.advance(time.Second)
		require.Equal(t, []string{"web"}, c.flushedPods())
		require.True(t, other.m.Admit(web).Admit)
		other.end()
	})
}

// lateCluster is a reporter for final statuses that answers after a minute, whatever its context.
type lateCluster struct{ cluster }

func (*lateCluster) FlushPod(context.Context, *v1.Pod) error {
	<-time.After(time.Minute)
	return nil
}

// A state file that is not usable, or of another user, is ignored, and nothing waits for it. It is
// named in the report of the next shutdown, which replaces it.
func TestPlantedState(t *testing.T) {
	now := func() (string, time.Duration, error) { return "one", time.Hour, nil }
	planted := []byte(`{"version":3,"bootID":"one","t0MonotonicNanoseconds":1,"hMonotonicNanoseconds":99999999999999,"report":{"started":"2026-01-01T00:00:00Z","pods":[{"name":"web","uid":"uid-web","signalled":true}]}}`)
	for name, plant := range map[string]func(path string) error{
		"a FIFO":             func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a device":           func(path string) error { return os.Symlink("/dev/zero", path) },
		"writable by others": func(path string) error { return errors.Join(os.WriteFile(path, planted, 0o600), os.Chmod(path, 0o622)) },
		"of another user": func(path string) error {
			return errors.Join(os.WriteFile(path, planted, 0o600), os.Chown(path, 12345, 12345))
		},
		"without a boot":        func(path string) error { return os.WriteFile(path, []byte(`{"version":3}`), 0o600) },
		"of an unknown version": func(path string) error { return os.WriteFile(path, []byte(`{"version":4,"bootID":"one"}`), 0o600) },
		"of the version before": func(path string) error { return os.WriteFile(path, []byte(`{"version":2,"bootID":"one"}`), 0o600) },
		"a debt without a pod": func(path string) error {
			return os.WriteFile(path, []byte(`{"version":3,"bootID":"one","debts":[{"kind":"status"}]}`), 0o600)
		},
		"larger than any of ours": func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := plant(filepath.Join(dir, progressFile)); errors.Is(err, os.ErrPermission) {
				t.Skip("only root can give files away")
			} else {
				require.NoError(t, err)
			}
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				n.opts.StateDir, n.opts.Source = dir, nil
				m, err := shutdown.NewManagerOn(n.opts, now)
				require.NoError(t, err)
				require.True(t, m.Admit(nil).Admit)
				n.start(m)
				synctest.Wait()
				require.Empty(t, n.killer.Kills())
				_, ok := m.LastReport()
				require.False(t, ok)
				require.NoError(t, m.Trigger(shutdown.Event{}))
				n.advance(time.Minute)
				require.Len(t, n.killer.Kills(), 2)
				require.Len(t, n.lastReport().Errors, 1)
				require.Contains(t, n.lastReport().Errors[0], progressFile)
				data, err := os.ReadFile(filepath.Join(dir, progressFile))
				require.NoError(t, err)
				require.Contains(t, string(data), "uid-web", "it is replaced")
			})
		})
	}
}

// The leftovers of interrupted writes are removed and nothing else. A stored report with a time
// in the future does not hide the next report.
func TestLeftoversAndAReportFromTheFuture(t *testing.T) {
	dir := t.TempDir()
	leftover, other := filepath.Join(dir, ".tmp-"+progressFile+"123"), filepath.Join(dir, ".tmp-other")
	require.NoError(t, os.WriteFile(leftover, nil, 0o600))
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, progressFile), []byte(`{"version":3,"bootID":"zero","report":{"origin":"former","started":"2126-01-01T00:00:00Z","ended":"2126-01-01T00:00:01Z"}}`), 0o600))
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.StateDir = dir
		n.runOnBoot(&boot{id: "one", began: time.Now()})
		require.NoFileExists(t, leftover)
		require.FileExists(t, other)
		require.Equal(t, "former", n.lastReport().Origin)
		n.host.Announce(shutdown.Event{Origin: "logind"})
		n.advance(time.Minute)
		require.Equal(t, "logind", n.lastReport().Origin)
	})
}
