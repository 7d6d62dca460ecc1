//go:build go1.25

package shutdown_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// Buckets follow one another from the lowest, and the host is released when the last pod has
// ended.
func TestBucketsInOrder(t *testing.T) {
	pods := []*v1.Pod{
		shutdowntest.Pod("web", 0, 5),
		shutdowntest.Pod("etcd", topPriority, 5),
		shutdowntest.Pod("batch", -5, 5),
	}
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 3 * time.Second}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)

		require.Zero(t, n.killedAfter("web", began))
		require.Zero(t, n.killedAfter("batch", began))
		require.Equal(t, 3*time.Second, n.killedAfter("etcd", began))
		require.Equal(t, 6*time.Second, n.releasedAfter(began))
		require.Equal(t, map[string]int64{"web": 5, "batch": 5, "etcd": 5}, n.grantedSeconds())
	})
}

// A bucket that ends early leaves its time to later ones, unless roll-over is off. A pod without
// a grace period gets no more than its bucket's own time.
func TestRollOver(t *testing.T) {
	for _, test := range []struct {
		name       string
		noRollOver bool
		granted    map[string]int64
		released   time.Duration
	}{
		{"on", false, map[string]int64{"web": 20, "etcd": 26, "proxy": 10}, 30 * time.Second},
		{"off", true, map[string]int64{"web": 20, "etcd": 10, "proxy": 10}, 14 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			pods := []*v1.Pod{
				shutdowntest.Pod("web", 0, -1),
				shutdowntest.Pod("etcd", topPriority, 60),
				shutdowntest.Pod("proxy", topPriority, -1),
			}
			inBubble(t, pods, func(t *testing.T, n *node) {
				n.opts.Plan.NoRollOver = test.noRollOver
				n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Takes: 4 * time.Second}, "etcd": {Takes: time.Hour}}
				n.run()
				began := time.Now()
				n.announce()
				n.advance(time.Minute)
				require.Equal(t, test.granted, n.grantedSeconds())
				require.Equal(t, test.released, n.releasedAfter(began))
			})
		})
	}
}

// Only the pods' own time rolls over, once, and not the time that the hooks leave unused.
func TestRollOverOfThePodsTimeAlone(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("db", 1000, 60), shutdowntest.Pod("etcd", topPriority, 60)}
	inBubble(t, pods, func(t *testing.T, n *node) {
		setAllHooks(n)
		n.opts.Reporter = &shutdowntest.Reporter{MarkTakes: 900 * time.Millisecond}
		n.opts.Config = config(0, 0, priorityPeriod(0, 20), priorityPeriod(1000, 10), priorityPeriod(topPriority, 10))
		n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Takes: 4 * time.Second}, "db": {Takes: time.Hour}}
		n.run()
		n.announce()
		n.advance(5 * time.Minute)
		require.Equal(t, map[string]int64{"web": 20, "db": 26, "etcd": 10}, n.grantedSeconds())
	})
}

// The time of a bucket without pods rolls over.
func TestAnEmptyBucketLeavesItsTime(t *testing.T) {
	for noRollOver, want := range map[bool]int64{false: 30, true: 10} {
		inBubble(t, []*v1.Pod{shutdowntest.Pod("etcd", topPriority, 60)}, func(t *testing.T, n *node) {
			n.opts.Plan.NoRollOver = noRollOver
			n.run()
			n.announce()
			require.Equal(t, map[string]int64{"etcd": want}, n.grantedSeconds())
		})
	}
}

// The operator's limit ends a drain as the host's limit does, and the pods have all of it. A
// deadline after it does not start a new drain.
func TestDeadlineAfterTheOperatorsLimit(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		usePodsThatUseAllTheirGrace(n)
		n.opts.Plan.Limit = 20 * time.Second
		n.run()
		began := time.Now()
		require.NoError(t, n.m.Trigger(shutdown.Event{}))
		n.advance(5 * time.Second)
		n.host.Announce(shutdown.Event{Deadline: began.Add(time.Minute)})
		n.advance(time.Minute)
		require.Equal(t, map[string]int64{"web": 10, "etcd": 10}, n.grantedSeconds())
		require.Len(t, n.killer.Kills(), 2)
		require.Equal(t, 10*time.Second, n.killedAfter("etcd", began))
		require.Equal(t, 19500*time.Millisecond, n.lastReport().Ended.Sub(began))
	})
}

// A host that does not wait overtakes a drain without a limit.
func TestTriggeredDrainIsOvertakenByTheHost(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		usePodsThatUseAllTheirGrace(n)
		n.run()
		began := time.Now()
		require.NoError(t, n.m.Trigger(shutdown.Event{}))
		n.advance(time.Second)
		n.host.Announce(shutdown.Event{Deadline: began.Add(9 * time.Second)})
		n.advance(time.Minute)
		require.Equal(t, map[string]int64{"web": 0, "etcd": 8}, n.grantedSeconds())
		require.Equal(t, time.Second, n.killedAfter("etcd", began))
		require.Equal(t, 8500*time.Millisecond, n.releasedAfter(began), "the margin stays")
	})
}

// A limit below the schedule makes a smaller plan, which gives all of it to the pods. Critical pods
// lose time last, and the lock is released before the host's end all the same.
func TestLimitBelowTheSchedule(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)}
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.host.Limit, n.host.Winner = 15*time.Second, "/etc/systemd/logind.conf.d/zz.conf"
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.run()
		inhibitor := n.m.Inhibitor()
		require.True(t, inhibitor.Held)
		require.Equal(t, 32500*time.Millisecond, inhibitor.Requested)
		require.Equal(t, 15*time.Second, inhibitor.Granted)
		var capped *shutdown.DelayCappedError
		require.ErrorAs(t, inhibitor.Err, &capped)
		require.Equal(t, n.host.Winner, capped.Winner)
		require.Equal(t, []string{"Warning Shutdown " + capped.Error()}, n.events.all())

		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, map[string]int64{"web": 5, "etcd": 10}, n.grantedSeconds())
		require.Equal(t, 5*time.Second, n.killedAfter("etcd", began))
		require.Equal(t, 14500*time.Millisecond, n.releasedAfter(began))
	})
}

// The limit that comes with the event counts, not the one that was granted.
func TestDeadlineOfTheEvent(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)}
	for _, test := range []struct {
		name     string
		deadline time.Duration
		granted  map[string]int64
		released time.Duration
	}{
		{"covers the schedule", 40 * time.Second, map[string]int64{"web": 20, "etcd": 10}, 30 * time.Second},
		{"shorter", 12 * time.Second, map[string]int64{"web": 2, "etcd": 10}, 11500 * time.Millisecond},
		{"margin is a tenth at most", 2 * time.Second, map[string]int64{"web": 0, "etcd": 2}, 1800 * time.Millisecond},
		{"over", -time.Second, map[string]int64{"web": 0, "etcd": 0}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, pods, func(t *testing.T, n *node) {
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				n.run()
				began := time.Now()
				n.host.Announce(shutdown.Event{Deadline: began.Add(test.deadline)})
				n.advance(time.Minute)
				require.Equal(t, test.granted, n.grantedSeconds())
				require.Equal(t, test.released, n.releasedAfter(began))
			})
		})
	}
}

// A killer that hangs does not keep the lock longer than the host waits. Run waits for the
// killer.
func TestHangingKiller(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("stuck", 0, 60), shutdowntest.Pod("etcd", topPriority, 5)}
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.killer.Pods = map[string]shutdowntest.Behaviour{"stuck": {Hangs: true, Deaf: true}}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(20 * time.Second)
		require.Equal(t, 20*time.Second, n.killedAfter("etcd", began), "the next bucket begins all the same")
		n.advance(time.Minute)
		require.Equal(t, 32*time.Second, n.releasedAfter(began), "the limit less the margin")

		report := n.lastReport()
		require.Len(t, report.Pods, 3)
		require.Zero(t, report.Pods[1].Ended, "it has not ended")
		n.stop()
		synctest.Wait()
		require.Empty(t, n.ended, "Run waits for the killer")
		n.killer.Release()
		synctest.Wait()
		report = n.lastReport()
		require.NotZero(t, report.Pods[1].Ended, "the straggler has written its slot")
	})
}

// The lock is released a margin before the host's end, a tenth of its limit at most.
func TestReleaseMargin(t *testing.T) {
	for _, test := range []struct {
		name                    string
		limit, margin, released time.Duration
	}{
		{"default", 30 * time.Second, 0, 29500 * time.Millisecond},
		{"its own", 30 * time.Second, 2 * time.Second, 28 * time.Second},
		{"not held for longer than needed", 30 * time.Minute, 0, 32500 * time.Millisecond},
		{"a tenth", 2 * time.Second, 0, 1800 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
				n.opts.Plan.ReleaseMargin = test.margin
				n.killer.Default = shutdowntest.Behaviour{Hangs: true}
				n.run()
				began := time.Now()
				n.host.Announce(shutdown.Event{Deadline: began.Add(test.limit)})
				n.advance(time.Minute)
				require.Equal(t, test.released, n.releasedAfter(began))
			})
		})
	}
}

// The time that Options.Pods takes does not cost the pods a second.
func TestSlowPods(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, -1)), func(t *testing.T, n *node) {
		n.opts.Pods = shutdown.PodsFunc(func() []*v1.Pod {
			<-time.After(30 * time.Millisecond)
			return n.currentPods()
		})
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, map[string]int64{"web": 20}, n.grantedSeconds())
	})
}

// Pods are identified by UID, whatever their order in the list and whether the list is new or
// reused.
func TestPodsInAnyOrder(t *testing.T) {
	web, api, etcd := shutdowntest.Pod("web", 0, 5), shutdowntest.Pod("api", 0, 5), shutdowntest.Pod("etcd", topPriority, 5)
	late := shutdowntest.Pod("late", 0, 5)
	for name, second := range map[string][]*v1.Pod{
		"the same":        {web, api, etcd},
		"turned around":   {etcd, api, web},
		"copies":          {web.DeepCopy(), api.DeepCopy(), etcd.DeepCopy()},
		"one in between":  {web, late, api, etcd},
		"one in place of": {late, api, etcd},
		"shorter":         {etcd},
		"nil":             {nil, web, nil, etcd},
	} {
		t.Run(name, func(t *testing.T) {
			shared := make([]*v1.Pod, 0, 8)
			inBubble(t, nil, func(t *testing.T, n *node) {
				n.opts.Pods = shutdown.PodsFunc(func() []*v1.Pod { return append(shared[:0], n.currentPods()...) })
				n.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
				n.setPods(web, api, etcd)
				n.run()
				n.announce()
				n.setPods(second...)
				n.advance(time.Minute)
				want := []string{"web", "api", "etcd"}
				if slices.Contains(second, late) {
					want = append(want, "late")
				}
				var killed []string
				for _, kill := range n.killer.Kills() {
					killed = append(killed, kill.Pod.Name)
				}
				require.ElementsMatch(t, want, killed)
			})
		})
	}
}

// Stragglers have until the host's end.
func TestStraggler(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("slow", 0, 60)}
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(31 * time.Second)
		n.killer.Release()
		synctest.Wait()
		require.Equal(t, 31*time.Second, n.releasedAfter(began))
		require.Equal(t, time.Duration(0), n.lastReport().Pods[0].Ended.Sub(began.Add(31*time.Second)))
	})
}

// The context of a kill that hangs ends when the host goes on.
func TestStragglerIsToldOfTheHostsEnd(t *testing.T) {
	inBubble(t, []*v1.Pod{shutdowntest.Pod("slow", 0, 60)}, func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		kill, _ := n.killer.Kill("slow")
		require.Equal(t, 32*time.Second, kill.Ended.Sub(began))
	})
}

// A host that has waited for as long as it granted is not reported as one that did not wait.
func TestDrainBeyondTheHostsTime(t *testing.T) {
	pod := shutdowntest.Pod("web", 0, 5)
	pod.Spec.Priority, pod.Spec.PriorityClassName = nil, "mine"
	inBubble(t, list(pod), func(t *testing.T, n *node) {
		n.opts.Plan.PriorityOf = func(string) (int32, bool) { <-time.After(900 * time.Millisecond); return 0, true }
		n.run()
		n.host.Announce(shutdown.Event{Deadline: time.Now().Add(time.Second)})
		n.advance(time.Minute)
		require.Empty(t, n.lastReport().Errors)
	})
}

// A bucket without time is signalled with 0 and not waited for, even if there is
// time that could roll over to it.
func TestBucketOfNoTime(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("early", -5, 60), shutdowntest.Pod("web", 0, 5), shutdowntest.Pod("etcd", 10, 60)}
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.opts.Config = config(0, 0, priorityPeriod(10, 10), priorityPeriod(0, 0), priorityPeriod(-10, 20))
		n.killer.Pods = map[string]shutdowntest.Behaviour{"web": {Hangs: true}}
		n.run()
		began := time.Now()
		n.announce()
		require.Zero(t, n.killedAfter("etcd", began), "it does not wait for web")
		require.Equal(t, map[string]int64{"early": 20, "web": 0, "etcd": 30}, n.grantedSeconds())
		n.advance(time.Minute)
		require.Equal(t, 32*time.Second, n.releasedAfter(began), "stragglers of it are waited for at the end")
	})
}

// Buckets without pods are skipped. Without any pods the host is released at once.
func TestEmptyBuckets(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.run()
		began := time.Now()
		n.announce()
		require.Zero(t, n.releasedAfter(began))
		require.Error(t, n.m.ShutdownStatus(), "the host is still going down")
	})
}

// A late pod joins the next bucket if its own is over.
func TestLatePod(t *testing.T) {
	web, etcd := shutdowntest.Pod("web", 0, 5), shutdowntest.Pod("etcd", topPriority, 5)
	inBubble(t, []*v1.Pod{web, etcd}, func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
		n.run()
		began := time.Now()
		n.announce()
		n.setPods(web, etcd, shutdowntest.Pod("late", 0, 60))
		n.advance(time.Minute)
		require.Equal(t, 5*time.Second, n.killedAfter("late", began))
		require.Equal(t, int64(25), n.grantedSeconds()["late"])
		require.Len(t, n.killer.Kills(), 3, "nobody is killed twice")
		kill := n.lastReport().Pods[2]
		require.Equal(t, "late", kill.Name)
		require.Equal(t, topPriority, kill.Bucket)
		require.Zero(t, kill.Priority)
	})
}

// All pods of a bucket are signalled in the same moment, however many there are
// and however long each takes.
func TestAllAtOnce(t *testing.T) {
	var pods []*v1.Pod
	for i := range 500 {
		pods = append(pods, shutdowntest.Pod("pod-"+string(rune('a'+i%26))+time.Duration(i).String(), 0, 10))
	}
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 7 * time.Second}
		n.run()
		began := time.Now()
		n.announce()
		kills := n.killer.Kills()
		require.Len(t, kills, len(pods))
		for _, kill := range kills {
			require.Equal(t, began, kill.Started)
		}
		n.advance(7 * time.Second)
		require.Equal(t, 7*time.Second, n.releasedAfter(began))
	})
}

// Without a schedule, a triggered drain gives each pod its own grace period.
func TestNoSchedule(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("web", 0, 5), shutdowntest.Pod("db", topPriority, 90), shutdowntest.Pod("plain", 0, -1), shutdowntest.Pod("cni", topPriority, 5)}
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.opts.Config = plan.Config{}
		n.opts.Reporter, n.opts.Plan.FlushReserve = &shutdowntest.Reporter{}, 1500*time.Millisecond
		n.run()
		require.Empty(t, n.host.Calls(), "nothing is watched")
		require.NoError(t, n.m.Trigger(shutdown.Event{}))
		n.advance(time.Minute)
		require.Equal(t, map[string]int64{"web": 5, "db": 90, "plain": 90, "cni": 5}, n.grantedSeconds())
	})
}

// The manager does not change the pods of its caller.
func TestPodsAreNotChanged(t *testing.T) {
	pod := shutdowntest.Pod("web", 0, 5)
	before := pod.DeepCopy()
	inBubble(t, []*v1.Pod{pod, nil}, func(t *testing.T, n *node) {
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, before, pod)
	})
}
