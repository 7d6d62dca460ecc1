package shutdown_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

const (
	timesFile    = "graceful_node_shutdown_state"
	progressFile = "graceful_node_shutdown_progress"
)

// boot is a boot of the host, on which agents run one after the other. err is the error of
// reading its ID and clock.
type boot struct {
	id    string
	began time.Time
	err   error
}

func (b *boot) sinceBoot() (string, time.Duration, error) {
	return b.id, time.Since(b.began) + time.Hour, b.err
}

// runOnBoot makes a manager on a boot, starts it, and waits until it is ready.
func (n *node) runOnBoot(b *boot) {
	n.t.Helper()
	m, err := shutdown.NewManagerOn(n.opts, b.sinceBoot)
	require.NoError(n.t, err)
	n.start(m)
	<-m.Ready()
	synctest.Wait()
}

// crash ends the agent like kill -9: the next agent finds the state files as they were before.
func (n *node) crash() {
	n.t.Helper()
	files := map[string][]byte{}
	for _, name := range []string{timesFile, progressFile} {
		data, err := os.ReadFile(filepath.Join(n.opts.StateDir, name))
		require.NoError(n.t, err)
		files[name] = data
	}
	n.end()
	for name, data := range files {
		require.NoError(n.t, os.WriteFile(filepath.Join(n.opts.StateDir, name), data, 0o644))
	}
	n.killer = &shutdowntest.Killer{Default: n.killer.Default}
	n.opts.Killer = n.killer
}

func twoPods() []*v1.Pod {
	return list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60))
}

// An agent that is killed after the first bucket resumes with the second, keeps the same end, and
// admits no pod.
func TestResumeAfterTheFirstBucket(t *testing.T) {
	for name, sourced := range map[string]bool{"with a source": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
				if !sourced {
					n.opts.Source = nil
				}
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				n.runOnBoot(one)
				began := time.Now()
				event := shutdown.Event{Kind: shutdown.KindReboot, Origin: "test"}
				if sourced {
					n.host.Announce(event)
				} else {
					require.NoError(t, n.m.Trigger(event))
				}
				n.advance(22 * time.Second)
				require.Len(t, n.killer.Kills(), 2)
				n.crash()

				n.setPods(n.pods[1])
				n.advance(3 * time.Second)
				n.runOnBoot(one)
				require.False(t, n.m.Admit(nil).Admit)
				require.Equal(t, map[string]int64{"etcd": 5}, n.grantedSeconds())
				n.advance(time.Minute)
				kill, _ := n.killer.Kill("etcd")
				require.Equal(t, 30*time.Second, kill.Ended.Sub(began), "the same end")
				report := n.lastReport()
				require.Equal(t, shutdown.KindReboot, report.Kind)
				require.Equal(t, "test", report.Origin)
				require.True(t, began.Equal(report.Started))
				require.Equal(t, []string{"web", "etcd"}, []string{report.Pods[0].Name, report.Pods[1].Name})
			})
		})
	}
}

// An agent that is stopped in order during a drain leaves it to the next one too.
func TestResumeAfterAStop(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		n.announce()
		n.advance(5 * time.Second)
		n.end()
		require.Zero(t, n.lastReport().Ended)
		n.advance(2 * time.Second)
		n.runOnBoot(one)
		require.Equal(t, map[string]int64{"web": 13}, n.grantedSeconds(), "the rest of the first bucket's time")
		n.advance(time.Minute)
		require.Equal(t, map[string]int64{"web": 13, "etcd": 10}, n.grantedSeconds())
	})
}

// The host's end is that of the event, also for pods that hang.
func TestResumeKeepsTheHostsEnd(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true}
		n.runOnBoot(one)
		began := time.Now()
		n.announce()
		n.advance(25 * time.Second)
		n.crash()
		n.runOnBoot(one)
		n.advance(time.Minute)
		require.Equal(t, 32*time.Second, n.lastReport().Ended.Sub(began))
	})
}

// A host that cannot say whether a shutdown is pending does not stop a resumed drain.
func TestResumeWhereTheHostCannotTell(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		n.announce()
		n.advance(22 * time.Second)
		n.crash()
		n.host.Script(func(h *shutdowntest.Host) { h.PendingErr = errors.ErrUnsupported })
		n.runOnBoot(one)
		require.Equal(t, map[string]int64{"etcd": 8, "web": 8}, n.grantedSeconds(), "the first bucket is done: what is left of it joins the second")
	})
}

// inBubbleAfterCrash runs a test on a node whose agent was killed 22 s after the announcement
// of a shutdown. The state file has the unfinished shutdown; the host's time is over at 32 s.
func inBubbleAfterCrash(t *testing.T, test func(t *testing.T, n *node, boot *boot)) {
	t.Helper()
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = flusher{reporter}
		n.runOnBoot(one)
		n.host.Announce(shutdown.Event{Kind: shutdown.KindReboot})
		n.advance(22 * time.Second)
		n.crash()
		test(t, n, one)
	})
}

// An agent kills no pod because of a stored shutdown if it does not know that the shutdown goes
// on: there may be no connection to the host, the time of the shutdown may be over, or another
// shutdown may be pending.
func TestStaleState(t *testing.T) {
	for name, test := range map[string]struct {
		change func(n *node)
		after  time.Duration // from the kill of the agent to the start of the next one
		admits time.Duration // from that start to the admission of pods; negative: none is admitted
		kills  int
	}{
		"cancelled meanwhile":                 {func(n *node) { n.host.SetPending(nil) }, 0, 0, 0},
		"the bus is away":                     {func(n *node) { n.host.Script(func(h *shutdowntest.Host) { h.PendingErr = errors.New("no bus") }) }, 0, 14 * time.Second, 0},
		"no connection":                       {func(n *node) { n.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = errors.New("no bus") }) }, 0, 14 * time.Second, 0},
		"a day later, no connection":          {func(n *node) { n.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = errors.New("no bus") }) }, 24 * time.Hour, 0, 0},
		"a day later, the host cannot tell":   {func(n *node) { n.host.Script(func(h *shutdowntest.Host) { h.PendingErr = errors.ErrUnsupported }) }, 24 * time.Hour, 0, 0},
		"a day later, without a source":       {func(n *node) { n.opts.Source = nil }, 24 * time.Hour, 0, 0},
		"a day later, nothing is pending":     {func(n *node) { n.host.SetPending(nil) }, 24 * time.Hour, 0, 0},
		"at once, without a source":           {func(n *node) { n.opts.Source = nil }, 0, -1, 2},
		"another one of another kind":         {func(n *node) { n.host.SetPending(&shutdown.Event{Kind: shutdown.KindSoftReboot}) }, 0, -1, 1},
		"another one of the kind, much later": {func(n *node) { n.host.SetPending(&shutdown.Event{Kind: shutdown.KindReboot}) }, 24 * time.Hour, -1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleAfterCrash(t, func(t *testing.T, n *node, boot *boot) {
				test.change(n)
				n.advance(test.after)
				m, err := shutdown.NewManagerOn(n.opts, boot.sinceBoot)
				require.NoError(t, err)
				require.Equal(t, test.after > 0, m.Admit(nil).Admit, "before Run")
				n.start(m)
				synctest.Wait()
				if test.admits > 0 {
					n.advance(test.admits - time.Second)
					require.False(t, m.Admit(nil).Admit)
					n.advance(time.Second)
				}
				require.Equal(t, test.admits >= 0, m.Admit(nil).Admit)
				require.Len(t, n.killer.Kills(), test.kills)
				if test.admits >= 0 {
					require.NotZero(t, n.lastReport().Ended, "the stored shutdown is over")
				}
			})
		})
	}
}

// An agent that resumes a drain does not call Hold again.
func TestResumeDoesNotHoldAgain(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		holds := 0
		n.opts.Hold = func(context.Context) error { holds++; return nil }
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		n.announce()
		n.advance(5 * time.Second)
		n.crash()
		n.runOnBoot(one)
		require.Equal(t, 1, holds)
		require.Len(t, n.killer.Kills(), 1)
		n.advance(time.Minute)
		require.NotContains(t, strings.Join(n.lastReport().Errors, "\n"), "hold")
	})
}

// No pod is admitted before the host has said whether the shutdown goes on.
func TestUnknownWhetherToResume(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		n.announce()
		n.advance(5 * time.Second)
		n.crash()
		n.host.SetPending(nil)
		n.host.PendingTakes = 3 * time.Second
		m, err := shutdown.NewManagerOn(n.opts, one.sinceBoot)
		require.NoError(t, err)
		n.start(m)
		synctest.Wait()
		require.False(t, m.Admit(nil).Admit)
		n.advance(3 * time.Second)
		require.True(t, m.Admit(nil).Admit)
		require.Empty(t, n.killer.Kills())
	})
}

// A shutdown of a host without a limit is stored with an end that saturates.
func TestResumeWithoutALimit(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		n.host.Announce(shutdown.Event{Deadline: time.Now().Add(math.MaxInt64)})
		n.advance(22 * time.Second)
		n.crash()
		n.setPods(n.pods[1])
		n.runOnBoot(one)
		require.Equal(t, map[string]int64{"etcd": 8}, n.grantedSeconds())
		require.Equal(t, 0, n.host.Held())
		n.advance(time.Second)
		require.Zero(t, n.lastReport().Ended, "the drain waits for the pod")
	})
}

// If nothing is pending on the boot of a stored shutdown, the shutdown was cancelled while no
// agent ran.
func TestCancelledWhileAway(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		n.announce()
		n.advance(5 * time.Second)
		n.crash()
		n.host.SetPending(nil)
		for range 2 { // the second agent reads in the state file that the shutdown was cancelled
			n.runOnBoot(one)
			require.True(t, n.m.Admit(nil).Admit)
			require.Equal(t, 1, n.host.Held())
			require.Empty(t, n.killer.Kills())
			require.True(t, n.lastReport().Cancelled)
			published := reporter.Published()
			require.False(t, published[len(published)-1].State.ShuttingDown)
			n.end()
			n.host.Script(func(h *shutdowntest.Host) { h.PendingErr = errors.ErrUnsupported })
		}
	})
}

// On the next boot an agent reads the stored report, shows the times of the shutdown in its
// metrics, and reverts the node state. It admits pods.
func TestNextBoot(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.runOnBoot(one)
		began := time.Now()
		n.advance(time.Second)
		n.announce()
		n.advance(time.Minute)
		before := n.lastReport()
		n.end()

		n.host.SetPending(nil)
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		reg := prometheus.NewPedanticRegistry()
		m, err := metrics.NewShutdown(reg, metrics.Options{})
		require.NoError(t, err)
		n.opts.Metrics = m
		n.runOnBoot(&boot{id: "two", began: time.Now()})
		require.True(t, n.m.Admit(nil).Admit)
		require.Equal(t, float64(began.Unix()+1), metricValue(t, reg, "kubelet_graceful_shutdown_start_time_seconds"))
		require.Equal(t, float64(began.Unix()+1), metricValue(t, reg, "kubelet_graceful_shutdown_end_time_seconds"))
		require.Len(t, reporter.Published(), 1)
		require.False(t, reporter.Published()[0].State.ShuttingDown)
		require.JSONEq(t, asJSON(t, before), asJSON(t, n.lastReport()))
	})
}

// A shutdown that never ended is reported by the next boot, and not resumed.
func TestUnfinishedInAnotherBoot(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		n.announce()
		n.advance(22 * time.Second)
		n.crash()
		n.host.SetPending(nil)
		n.runOnBoot(&boot{id: "two", began: time.Now()})
		require.True(t, n.m.Admit(nil).Admit)
		require.Empty(t, n.killer.Kills())
		require.Zero(t, n.lastReport().Ended)
		require.Len(t, n.lastReport().Pods, 2, "the pods that were signalled before the last write")
	})
}

// A state file that is not usable is reported, does no harm, and is replaced by the next
// shutdown.
func TestUnusableState(t *testing.T) {
	for name, content := range map[string]string{"torn": `{"version":1,"boo`, "empty": "", "foreign": `{"version":7}`} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range []string{timesFile, progressFile} {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644))
			}
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				n.opts.StateDir = dir
				boot := &boot{id: "one", began: time.Now()}
				n.runOnBoot(boot)
				require.True(t, n.m.Admit(nil).Admit)
				require.Len(t, n.lastReport().Errors, 2)
				require.Contains(t, n.lastReport().Errors[0], progressFile)
				n.announce()
				n.advance(time.Minute)
				require.Len(t, n.lastReport().Errors, 2, "in the report of the next shutdown too")
				n.end()
				n.host.SetPending(nil)
				n.runOnBoot(boot)
				require.Len(t, n.lastReport().Pods, 2)
			})
		})
	}
}

// A state folder that cannot be written to does not change the drain. Its report names the
// error.
func TestUnwritableState(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.Mkdir(dir, 0o755))
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.StateDir = dir
		n.runOnBoot(&boot{id: "one", began: time.Now()})
		require.NoError(t, os.RemoveAll(dir))
		n.announce()
		n.advance(time.Minute)
		require.Len(t, n.killer.Kills(), 2)
		report := n.lastReport()
		require.NotEmpty(t, report.Errors)
		require.Contains(t, report.Errors[0], "failed to store the shutdown state")
		require.Zero(t, n.host.Held())
	})
}

// If the boot has no ID, only the kubelet's file is written.
func TestUnknownBoot(t *testing.T) {
	dir := t.TempDir()
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.StateDir = dir
		n.runOnBoot(&boot{err: errors.ErrUnsupported})
		n.announce()
		n.advance(time.Minute)
		require.Contains(t, n.lastReport().Errors[0], errors.ErrUnsupported.Error())
	})
	require.FileExists(t, filepath.Join(dir, timesFile))
	require.NoFileExists(t, filepath.Join(dir, progressFile))
}

// The kubelet's file has its two fields. The end is the zero time while a shutdown goes on.
func TestStoredTimes(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		began := time.Now()
		n.announce()
		n.advance(time.Second)
		require.Equal(t, map[string]time.Time{"startTime": began.UTC(), "endTime": {}}, storedTimes(t, n.opts.StateDir))
		n.advance(time.Minute)
		require.Equal(t, map[string]time.Time{"startTime": began.UTC(), "endTime": began.Add(30 * time.Second).UTC()}, storedTimes(t, n.opts.StateDir))
	})
}

func storedTimes(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, timesFile))
	require.NoError(t, err)
	var stored map[string]time.Time
	require.NoError(t, json.Unmarshal(data, &stored))
	for key, at := range stored {
		stored[key] = at.UTC()
	}
	return stored
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	require.NoError(t, err)
	return string(data)
}

// refusedMetric starts an agent with a new registry, calls during, and ends the agent. It
// returns the agent's metric of refused pods.
func (n *node) refusedMetric(b *boot, during func()) float64 {
	n.t.Helper()
	reg := prometheus.NewPedanticRegistry()
	m, err := metrics.NewShutdown(reg, metrics.Options{})
	require.NoError(n.t, err)
	n.opts.Metrics = m
	n.runOnBoot(b)
	during()
	n.end()
	return metricValue(n.t, reg, "kubelet_graceful_shutdown_pods_refused_total")
}

// The counter of refused pods keeps its value after a restart and after a reboot, because a node
// that shuts down is rarely scraped again.
func TestRefusedPodsAreRemembered(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.StateDir = t.TempDir()
		b := &boot{id: "one", began: time.Now()}
		refuse := func() {
			for range 3 {
				require.False(t, n.m.Admit(nil).Admit)
			}
		}
		require.Equal(t, 3.0, n.refusedMetric(b, func() { n.announce(); n.advance(time.Minute); refuse() }))
		require.Equal(t, 6.0, n.refusedMetric(b, refuse), "while the shutdown goes on")
		n.host.SetPending(nil)
		b.id = "two"
		require.Equal(t, 6.0, n.refusedMetric(b, func() { require.True(t, n.m.Admit(nil).Admit) }))
		require.Equal(t, 9.0, n.refusedMetric(b, func() { n.announce(); refuse() }))
		require.Equal(t, 9.0, n.refusedMetric(b, func() {}))
	})
}

// The node state of a previous agent is reverted even if nothing is on record, but not before it
// is known that no shutdown goes on.
func TestUndoneAtTheStart(t *testing.T) {
	for _, test := range []struct {
		name   string
		script func(*node)
		want   []bool // what was published: whether the node shuts down
	}{
		{"nothing is pending", func(*node) {}, []bool{false}},
		{"no host", func(n *node) { n.opts.Source = nil }, []bool{false}},
		{"the host cannot tell", func(n *node) { n.host.PendingErr = errors.ErrUnsupported }, []bool{false}},
		{"the host is not there", func(n *node) { n.host.ConnectErr = errors.New("no bus") }, []bool{false}},
		{"a shutdown is pending", func(n *node) { n.host.SetPending(&shutdown.Event{}) }, []bool{true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, n *node) {
				reporter := &shutdowntest.Reporter{}
				n.opts.Reporter = reporter
				test.script(n)
				n.run()
				n.advance(time.Minute)
				var shuttingDown []bool
				for _, published := range reporter.Published() {
					shuttingDown = append(shuttingDown, published.State.ShuttingDown)
				}
				require.Equal(t, test.want, shuttingDown)
			})
		})
	}
}
