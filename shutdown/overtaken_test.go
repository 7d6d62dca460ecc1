package shutdown_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// tally is what a node's metrics and Options.OnReport are told.
type tally struct {
	registry *prometheus.Registry
	reports  chan shutdown.Report
}

// countReports sets the metrics and the OnReport of a node.
func countReports(t *testing.T, n *node) *tally {
	t.Helper()
	told := &tally{registry: prometheus.NewRegistry(), reports: make(chan shutdown.Report, 9)}
	shown, err := metrics.NewShutdown(told.registry, metrics.Options{})
	require.NoError(t, err)
	n.opts.Metrics = shown
	n.opts.OnReport = func(_ context.Context, r shutdown.Report) { told.reports <- r }
	return told
}

// podsCounted returns how many pods the metrics have counted.
func (c *tally) podsCounted(t *testing.T) (n float64) {
	t.Helper()
	for _, of := range metricByLabel(t, c.registry, "kubelet_graceful_shutdown_pods_total") {
		n += of
	}
	return n
}

// names returns the pods of a report in its order.
func names(r shutdown.Report) (all []string) {
	for _, pod := range r.Pods {
		all = append(all, pod.Name)
	}
	return all
}

// A cloud's notice begins late, and has killed a pod when the host announces the same end of the
// node with less time. That is one shutdown: one report, which begins with the notice and has the
// pods of both drains, one start, one count for each pod.
func TestOneReportOfANoticeAndTheHost(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		told := countReports(t, n)
		n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Takes: time.Hour}, "etcd": {Takes: time.Second}}
		n.opts.LateStart = func(event shutdown.Event) bool { return event.Origin == "cloud" }
		n.runOnBoot(one)
		began := time.Now()
		require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "cloud", Kind: shutdown.KindHalt, Deadline: began.Add(time.Minute)}))
		n.advance(30 * time.Second)
		require.Equal(t, 27500*time.Millisecond, n.killedAfter("web", began))
		n.host.Announce(shutdown.Event{Origin: "logind", Kind: shutdown.KindPoweroff, Deadline: began.Add(58 * time.Second)})
		n.advance(time.Minute)

		require.Len(t, n.killer.Kills(), 2, "web is not killed again, what is left is enough")
		require.Equal(t, 47500*time.Millisecond, n.killedAfter("etcd", began))
		require.Equal(t, 48500*time.Millisecond, n.releasedAfter(began))
		require.Len(t, told.reports, 1)
		report := <-told.reports
		require.Equal(t, n.lastReport(), report)
		require.Equal(t, []string{"web", "etcd"}, names(report))
		require.Equal(t, "logind", report.Origin)
		require.Equal(t, shutdown.KindPoweroff, report.Kind)
		require.True(t, report.Started.Equal(began))
		require.True(t, report.Pods[0].Started.Equal(began.Add(27500*time.Millisecond)))
		require.Equal(t, "GraceExceeded", report.Pods[0].Outcome)
		require.Equal(t, 2.0, told.podsCounted(t))
		require.Equal(t, float64(began.Unix()), metricValue(t, told.registry, "kubelet_graceful_shutdown_start_time_seconds"))
		require.Len(t, n.events.all(), 1, "detected once")
		stored, found, err := shutdown.StoredReport(n.opts.StateDir)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, []string{"web", "etcd"}, names(stored))
	})
}

// A pod counts once, however often the shutdown that kills it is overtaken, and also if each of its
// drains gives the pod up.
func TestAPodCountsOnceInAShutdownThatIsOvertaken(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		told := countReports(t, n)
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.killer.Pods = map[string]shutdowntest.Behaviour{"etcd": {Hangs: true}}
		n.setPods(shutdowntest.Pod("web", 0, 0), shutdowntest.Pod("etcd", topPriority, 60))
		n.run()
		began := time.Now()
		for _, end := range []time.Duration{time.Minute, 29 * time.Second, 20 * time.Second, 10 * time.Second} {
			n.host.Announce(shutdown.Event{Deadline: began.Add(end)})
			n.advance(time.Second)
		}
		n.advance(time.Minute)
		require.Equal(t, 9500*time.Millisecond, n.releasedAfter(began))
		require.Len(t, told.reports, 1)
		require.Equal(t, []string{"web", "etcd"}, names(<-told.reports))
		require.Equal(t, 2.0, told.podsCounted(t))
	})
}

// The drain is done and the host was let go when it announces an earlier deadline. The report
// stays, that on disk too.
func TestEarlierDeadlineAfterTheDrain(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		told := countReports(t, n)
		n.runOnBoot(one)
		began := time.Now()
		n.host.Announce(shutdown.Event{Deadline: began.Add(time.Minute)})
		n.advance(5 * time.Second)
		before := n.lastReport()
		require.Equal(t, []string{"web", "etcd"}, names(before))
		n.host.Announce(shutdown.Event{Deadline: began.Add(20 * time.Second)})
		n.advance(time.Minute)
		require.Equal(t, before, n.lastReport())
		require.Len(t, n.killer.Kills(), 2)
		require.Len(t, told.reports, 1)
		require.Equal(t, 2.0, told.podsCounted(t))
		stored, _, err := shutdown.StoredReport(n.opts.StateDir)
		require.NoError(t, err)
		require.Equal(t, []string{"web", "etcd"}, names(stored))
	})
}

// The drain for a notice is done when the host announces the same end of the node. Whoever is
// listed by then and has not ended is killed in the same shutdown, which is reported as a whole.
func TestTheHostAnnouncesAfterTheDrainForANotice(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		told := countReports(t, n)
		n.runOnBoot(one)
		began := time.Now()
		require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "cloud", Deadline: began.Add(2 * time.Minute)}))
		n.advance(10 * time.Second)
		require.Equal(t, []string{"web", "etcd"}, names(<-told.reports))
		n.setPods(append(twoPods(), shutdowntest.Pod("late", 0, 5))...)
		n.host.Announce(shutdown.Event{Origin: "logind"})
		synctest.Wait()
		require.Equal(t, 10*time.Second, n.killedAfter("late", began))
		n.advance(time.Minute)
		require.Len(t, n.killer.Kills(), 3, "who has ended is not killed again")
		report := <-told.reports
		require.Equal(t, n.lastReport(), report)
		require.Equal(t, []string{"web", "etcd", "late"}, names(report))
		require.True(t, report.Started.Equal(began))
		require.True(t, report.Ended.Equal(began.Add(10*time.Second)))
		require.Empty(t, told.reports)
		require.Equal(t, 3.0, told.podsCounted(t))
		stored, _, err := shutdown.StoredReport(n.opts.StateDir)
		require.NoError(t, err)
		require.Equal(t, []string{"web", "etcd", "late"}, names(stored))
	})
}

// An agent takes up the shutdown of one that was killed, and the host then leaves less time. A pod
// that the former agent has killed is in the one report, and the API server is told of its end, if
// need be after the next boot.
func TestResumedThenOvertaken(t *testing.T) {
	for name, lateBoot := range map[string]bool{"in time": false, "after the next boot": true} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
				c := &cluster{}
				n.opts.Reporter = c
				n.killer.Default = shutdowntest.Behaviour{Takes: 8 * time.Second}
				n.runOnBoot(one)
				began := time.Now()
				n.host.Announce(shutdown.Event{Deadline: began.Add(40 * time.Second)})
				n.advance(2 * time.Second)
				n.crash()
				c.setAway(lateBoot)
				n.runOnBoot(one)
				n.advance(2 * time.Second)
				n.host.Announce(shutdown.Event{Deadline: began.Add(25 * time.Second)})
				n.advance(time.Minute)
				report := n.lastReport()
				require.Equal(t, []string{"web", "etcd"}, names(report))
				require.True(t, report.Pods[0].Started.Equal(began))
				if lateBoot {
					require.Empty(t, c.flushedPods())
					n.crash()
					n.host.SetPending(nil)
					c.setAway(false)
					n.runOnBoot(&boot{id: "two", began: time.Now()})
					n.advance(time.Second)
				}
				require.Equal(t, []string{"etcd", "web"}, c.flushedPods())
			})
		})
	}
}

// A later deadline of the same host is not believed: also a shutdown that is announced after this one
// was dismissed has the time until the first deadline.
func TestLaterDeadlineOfTheSameHost(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.opts.LateStart = func(shutdown.Event) bool { return true }
		n.run()
		began := time.Now()
		n.host.Announce(shutdown.Event{Deadline: began.Add(time.Minute)})
		synctest.Wait()
		n.host.Announce(shutdown.Event{Deadline: began.Add(time.Hour)})
		synctest.Wait()
		require.NoError(t, n.m.Trigger(shutdown.Event{Cancelled: true}))
		n.advance(50 * time.Second)
		require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "notice"}))
		n.advance(time.Minute)
		require.LessOrEqual(t, n.releasedAfter(began), time.Minute)
		require.LessOrEqual(t, n.killedAfter("etcd", began), time.Minute)
	})
}
