//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

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

// A pod of the first bucket that is listed only after the restart has the time of the bucket that is
// under way, until the end of the drain.
func TestResumeWithALatePodOfABucketThatIsDone(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		n.announce()
		n.advance(22 * time.Second)
		n.crash()
		n.setPods(n.pods[1], shutdowntest.Pod("late", 0, 60))
		n.advance(3 * time.Second)
		n.runOnBoot(one)
		n.announce()
		require.Equal(t, map[string]int64{"etcd": 5, "late": 7}, n.grantedSeconds())
	})
}

// A shutdown that Trigger alone has announced is over once it is drained, since nobody could cancel
// it in the next agent: an agent that drains when it is stopped admits pods when it is started.
func TestARestartAfterADrainOfTrigger(t *testing.T) {
	for name, sourced := range map[string]bool{"with a source": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
				if !sourced {
					n.opts.Source = nil
				}
				n.runOnBoot(one)
				require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "test"}))
				n.advance(time.Second)
				ended := n.lastReport()
				require.Len(t, ended.Pods, 2)
				n.crash()

				n.runOnBoot(one)
				require.True(t, n.m.Admit(nil).Admit)
				require.NoError(t, n.m.ShutdownStatus())
				n.advance(time.Minute)
				require.Empty(t, n.killer.Kills())
				require.True(t, ended.Ended.Equal(n.lastReport().Ended))
			})
		})
	}
}

// A notice is announced again by the next agent, which reads it anew. If its shutdown was drained, that
// one goes on, with the pods that were started since. Any other announcement begins a new one.
func TestANoticeThatIsAnnouncedAgainAfterItsDrain(t *testing.T) {
	for name, test := range map[string]struct {
		event shutdown.Event // with the deadline of the notice, unless it has a kind
		again bool
	}{
		"the notice":      {shutdown.Event{Origin: "notice"}, true},
		"another origin":  {shutdown.Event{Origin: "other"}, false},
		"without its end": {shutdown.Event{Origin: "notice", Kind: shutdown.KindReboot}, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
				notice := shutdown.Event{Origin: "notice", Deadline: time.Now().Add(2 * time.Minute)}
				n.runOnBoot(one)
				require.NoError(t, n.m.Trigger(notice))
				n.advance(time.Second)
				began := n.lastReport().Started
				n.crash()

				n.setPods(shutdowntest.Pod("new", 0, 5))
				n.runOnBoot(one)
				n.advance(time.Second)
				if test.event.Kind == shutdown.KindUnknown {
					test.event.Deadline = notice.Deadline
				}
				require.NoError(t, n.m.Trigger(test.event))
				n.advance(time.Second)
				require.False(t, n.m.Admit(nil).Admit)
				report := n.lastReport()
				require.Equal(t, test.again, began.Equal(report.Started))
				require.Len(t, report.Pods, map[bool]int{true: 3, false: 1}[test.again])
				require.False(t, report.Ended.Before(report.Pods[len(report.Pods)-1].Ended), "it has ended anew")
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

// A resumed drain of pods that hang ends when the host's time, counted from the event, is over.
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

// A host that cannot say whether a shutdown is pending does not stop a resumed drain. A pod whose
// end is on record is not killed again, although it is listed; one that is not known to have ended
// is, with what is left of the grace period that it was granted.
func TestResumeWhereTheHostCannotTell(t *testing.T) {
	pods := append(twoPods(), shutdowntest.Pod("hangs", 0, 60))
	inBubbleWithState(t, pods, func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.killer.Pods = map[string]shutdowntest.Behaviour{"hangs": {Hangs: true, Deaf: true}}
		n.runOnBoot(one)
		n.announce()
		n.advance(22 * time.Second)
		n.crash()
		n.host.Script(func(h *shutdowntest.Host) { h.PendingErr = errors.ErrUnsupported })
		n.runOnBoot(one)
		require.Equal(t, map[string]int64{"etcd": 8, "hangs": 0}, n.grantedSeconds(), "the first bucket is done: its pod that still runs joins the second")
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
// shutdown may be pending. Where it goes on, it kills only who is not on record as ended.
func TestStaleState(t *testing.T) {
	for name, test := range map[string]struct {
		change func(n *node)
		after  time.Duration // from the end of the killed agent to the start of the next one
		admits time.Duration // from that start to the admission of pods; negative: no pod is admitted
		kills  int
	}{
		"cancelled meanwhile":               {func(n *node) { n.host.SetPending(nil) }, 0, 0, 0},
		"the host does not answer":          {func(n *node) { n.host.Script(func(h *shutdowntest.Host) { h.PendingErr = errors.New("no bus") }) }, 0, 14 * time.Second, 0},
		"no connection":                     {func(n *node) { n.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = errors.New("no bus") }) }, 0, 14 * time.Second, 0},
		"a day later, no connection":        {func(n *node) { n.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = errors.New("no bus") }) }, 24 * time.Hour, 0, 0},
		"a day later, the host cannot tell": {func(n *node) { n.host.Script(func(h *shutdowntest.Host) { h.PendingErr = errors.ErrUnsupported }) }, 24 * time.Hour, 0, 0},
		"a day later, without a source":     {func(n *node) { n.opts.Source = nil }, 24 * time.Hour, 0, 0},
		"a day later, nothing is pending":   {func(n *node) { n.host.SetPending(nil) }, 24 * time.Hour, 0, 0},
		"at once, without a source":         {func(n *node) { n.opts.Source = nil }, 0, -1, 1},
		"another one of another kind":       {func(n *node) { n.host.SetPending(&shutdown.Event{Kind: shutdown.KindSoftReboot}) }, 0, -1, 1},
		"the same one, much later":          {func(n *node) { n.host.SetPending(&shutdown.Event{Kind: shutdown.KindReboot}) }, 24 * time.Hour, -1, 0},
		"one of another kind, much later":   {func(n *node) { n.host.SetPending(&shutdown.Event{Kind: shutdown.KindSoftReboot}) }, 24 * time.Hour, -1, 1},
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

// A shutdown was stored in this boot, and the host says that none is pending: it was cancelled while
// no agent ran.
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

// If the host cannot tell what is pending, a resumed shutdown counts as the host's: the report
// says that the host did not wait.
func TestResumedWithoutALock(t *testing.T) {
	inBubbleAfterCrash(t, func(t *testing.T, n *node, boot *boot) {
		n.host.Script(func(h *shutdowntest.Host) { h.PendingErr = errors.ErrUnsupported })
		n.runOnBoot(boot)
		n.advance(time.Minute)
		require.Contains(t, n.lastReport().Errors, "the host did not wait: no lock was held")
	})
}

// An agent dies between two announcements, or after one was taken back. The next one knows who stands: the
// shutdown is cancelled with the last of them, and not before.
func TestResumedShutdownKnowsWhoHasAnnouncedIt(t *testing.T) {
	for name, tc := range map[string]struct {
		first, then shutdown.Event
		cancelled   bool // with the notice
	}{
		"a second announcer":                {shutdown.Event{Origin: "notice"}, shutdown.Event{Origin: "UPS"}, false},
		"a second announcer was taken back": {shutdown.Event{Origin: "UPS"}, shutdown.Event{Origin: "UPS", Cancelled: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				n.runOnBoot(one)
				require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "notice"}))
				n.advance(time.Second)
				require.NoError(t, n.m.Trigger(tc.first))
				n.advance(time.Second)
				require.NoError(t, n.m.Trigger(tc.then))
				n.advance(time.Second)
				n.crash()
				n.runOnBoot(one)
				n.advance(time.Second)
				require.False(t, n.m.Admit(nil).Admit)
				require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "notice", Cancelled: true}))
				n.advance(time.Second)
				require.Equal(t, tc.cancelled, n.m.Admit(nil).Admit)
			})
		})
	}
}
