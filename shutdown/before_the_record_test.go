//go:build linux && go1.25

package shutdown_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// inBubbleBeside runs a test with an agent that waits for the folder of another one, whose shutdown
// begins afterwards. All pods use all of their grace periods.
func inBubbleBeside(t *testing.T, prepare func(successor *node), test func(t *testing.T, former, successor *node, one *boot)) {
	t.Helper()
	inBubbleWithState(t, twoPods(), func(t *testing.T, former *node, one *boot) {
		former.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		former.runOnBoot(one)
		successor := former.startOther(twoPods(), one, func(successor *node) {
			successor.killer.Default = former.killer.Default
			if prepare != nil {
				prepare(successor)
			}
		})
		t.Cleanup(func() { successor.end() })
		former.advance(time.Second)
		test(t, former, successor, one)
	})
}

// What the host has said before the record could be read counts for the shutdown on record: the host
// does not say it again.
func TestHostSpeaksBeforeTheRecordIsRead(t *testing.T) {
	notice := func(n *node) {
		require.NoError(n.t, n.m.Trigger(shutdown.Event{Origin: "notice", Deadline: time.Now().Add(2 * time.Minute)}))
	}
	ofHost := func(n *node) { n.host.Announce(shutdown.Event{Deadline: time.Now().Add(2 * time.Minute)}) }
	for name, test := range map[string]struct {
		pendingErr error
		announce   func(former *node)
		cancels    bool
		goesOn     bool
	}{
		"nothing is pending, but a notice stands": {nil, notice, false, true},
		"it cannot tell":     {errors.ErrUnsupported, ofHost, false, true},
		"nothing is pending": {nil, ofHost, false, false},
		"cancelled":          {errors.ErrUnsupported, ofHost, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleBeside(t, func(successor *node) { successor.host.PendingErr = test.pendingErr }, func(t *testing.T, former, successor *node, _ *boot) {
				test.announce(former)
				former.advance(5 * time.Second)
				if test.cancels {
					successor.host.Cancel()
				}
				former.end()
				former.advance(time.Second)
				require.Equal(t, test.goesOn, !successor.m.Admit(nil).Admit)
				require.Equal(t, test.goesOn, len(successor.killer.Kills()) > 0)
			})
		})
	}
}

// A shutdown that begins before the record could be read is that of the record only if that goes on:
// one that Trigger has dismissed, or one of another kind, is another one.
func TestShutdownBeginsBesideAnotherOneOnRecord(t *testing.T) {
	for name, test := range map[string]struct {
		kind   shutdown.Kind
		cancel bool
	}{"dismissed": {shutdown.KindReboot, true}, "of another kind": {shutdown.KindSoftReboot, false}} {
		t.Run(name, func(t *testing.T) {
			inBubbleBeside(t, nil, func(t *testing.T, former, successor *node, _ *boot) {
				former.host.Announce(shutdown.Event{Kind: test.kind})
				former.advance(time.Second)
				if test.cancel {
					require.NoError(t, former.m.Trigger(shutdown.Event{Cancelled: true}))
				}
				former.advance(time.Second)
				began := time.Now()
				successor.host.Announce(shutdown.Event{Kind: shutdown.KindReboot})
				former.advance(time.Second)
				former.end()
				former.advance(time.Minute)
				report := successor.lastReport()
				require.False(t, report.Cancelled)
				require.Equal(t, shutdown.KindReboot, report.Kind)
				require.True(t, report.Started.Equal(began))
				require.Equal(t, 30*time.Second, report.Ended.Sub(began))
			})
		})
	}
}

// A shutdown that joins that of the record ends when its own drain does, whether that of the former
// agent was drained or not, and a third agent finds all times as they were.
func TestShutdownJoinsTheOneOnRecord(t *testing.T) {
	inBubbleBeside(t, nil, func(t *testing.T, former, successor *node, one *boot) {
		former.killer.Default = shutdowntest.Behaviour{}
		began := time.Now()
		require.NoError(t, former.m.Trigger(shutdown.Event{Origin: "notice", Deadline: began.Add(10 * time.Minute)}))
		former.advance(5 * time.Second)
		require.NotZero(t, former.lastReport().Ended)
		successor.setPods(shutdowntest.Pod("new", 0, 60))
		successor.announce()
		former.advance(time.Second)
		former.end()
		former.advance(5 * time.Second)
		stored, found, err := shutdown.StoredReport(former.opts.StateDir)
		require.NoError(t, err)
		require.True(t, found)
		require.True(t, stored.Started.Equal(began))
		require.Zero(t, stored.Ended)

		third := former.startOther(successor.currentPods(), one, func(third *node) {
			third.killer.Default = successor.killer.Default
			third.host.SetPending(&shutdown.Event{}) // before it is asked
		})
		t.Cleanup(func() { third.end() })
		successor.end()
		third.advance(time.Minute)
		report := third.lastReport()
		require.Len(t, report.Pods, len(stored.Pods))
		for i, pod := range report.Pods {
			require.True(t, pod.Started.Equal(stored.Pods[i].Started), pod.Name)
		}
		require.True(t, report.Started.Equal(began))
		require.Greater(t, report.Ended.Sub(began), 20*time.Second)
	})
}

// What Trigger has taken back before the record could be read stays taken back. The host has not said
// anything by then.
func TestTriggerCancelsBeforeTheRecordIsRead(t *testing.T) {
	for name, test := range map[string]struct {
		early  bool   // the shutdown begins before the successor
		host   bool   // the host announces it too
		origin string // that is cancelled
	}{
		"the notice":                       {true, false, "notice"},
		"the notice, the host cancels too": {true, true, "notice"},
		"all":                              {true, true, ""},
		"the notice, not known yet":        {false, false, "notice"},
		"all, not known yet":               {false, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, twoPods(), func(t *testing.T, former *node, one *boot) {
				former.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				former.runOnBoot(one)
				begin := func() {
					end := time.Now().Add(2 * time.Minute)
					require.NoError(t, former.m.Trigger(shutdown.Event{Origin: "notice", Deadline: end}))
					if test.host {
						former.host.Announce(shutdown.Event{Deadline: end})
					}
					former.advance(time.Second)
				}
				if test.early {
					begin()
				}
				successor := former.startOther(twoPods(), one, func(successor *node) { successor.host.PendingTakes = 8 * time.Second })
				t.Cleanup(func() { successor.end() })
				former.advance(time.Second)
				if !test.early {
					begin()
				}
				require.NoError(t, successor.m.Trigger(shutdown.Event{Cancelled: true, Origin: test.origin}))
				former.end()
				former.advance(time.Second)
				if test.host {
					successor.host.Cancel()
				}
				former.advance(time.Minute)
				require.True(t, successor.m.Admit(nil).Admit)
				require.Empty(t, successor.killer.Kills())
			})
		})
	}
}
