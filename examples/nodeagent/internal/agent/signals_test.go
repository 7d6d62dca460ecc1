package agent_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

func TestSignalsWithoutAShutdown(t *testing.T) {
	for name, test := range map[string]struct {
		host   bool
		signal os.Signal
		drains bool
	}{
		"manual, SIGTERM drains": {false, syscall.SIGTERM, true},
		"manual, SIGINT leaves":  {false, os.Interrupt, false},
		"logind, SIGTERM leaves": {true, syscall.SIGTERM, false},
		"logind, SIGINT leaves":  {true, os.Interrupt, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *testbed) {
				host := &shutdowntest.Host{}
				if test.host {
					b.opts.Source = host
				}
				b.addPod("web", 0, "")
				b.run()
				b.signals <- test.signal
				require.NoError(t, b.waitEnd())
				require.Equal(t, test.drains, len(b.runtime.Stops()) > 0)
				require.Zero(t, host.Held(), "the lock is released")
				require.NoError(t, host.Err())
			})
		})
	}
}

// runWithHost starts an agent with a host and one pod that takes 4 s to stop.
func runWithHost(b *testbed) *shutdowntest.Host {
	host := &shutdowntest.Host{}
	b.opts.Source = host
	b.addPod("web", 0, "exits 4s after TERM")
	b.run()
	return host
}

func TestHostShutsDown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		host := runWithHost(b)
		require.Equal(t, 1, host.Held())
		b.advance(time.Second)
		require.Contains(t, b.output(), "This machine's shutdown is held back")

		host.Announce(shutdown.Event{Kind: shutdown.KindPoweroff})
		b.advance(3 * time.Second)
		require.Equal(t, 1, host.Held(), "the lock is held while a pod is being stopped")
		b.advance(2 * time.Second)
		require.Zero(t, host.Held())
		require.True(t, b.running(), "the agent stays until the machine stops it")
		require.Equal(t, 1, strings.Count(b.output(), "1 of 1 pod stopped in time."))
		require.Contains(t, b.notified, "STATUS=The pods have been stopped")

		require.NoError(t, b.terminate())
	})
}

// systemd stops the agent as soon as the lock is released, which may be before the agent
// has seen the end of its own shutdown.
func TestSignalDuringADrainOfTheHost(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		host := runWithHost(b)
		host.Announce(shutdown.Event{})
		b.advance(time.Second)
		b.signals <- syscall.SIGTERM
		b.advance(time.Second)
		require.True(t, b.running(), "the drain goes on")
		require.Contains(t, b.output(), "SIGTERM: the pods are being stopped, and that goes on.")
		require.NoError(t, b.waitEnd(), "the agent leaves when the pods have stopped")
		require.Contains(t, b.output(), "1 of 1 pod stopped in time.")
	})
}

func TestSecondSignalEndsTheWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.addPod("stubborn", 0, "ignores TERM")
		b.run()
		began := time.Now()
		b.signals <- syscall.SIGTERM
		b.advance(time.Second)
		b.signals <- syscall.SIGTERM
		b.advance(time.Second)
		require.True(t, b.running())
		b.signals <- syscall.SIGTERM
		require.ErrorContains(t, b.waitEnd(), "a second SIGTERM ended the waiting for ns/stubborn")
		require.InDelta(t, 2, time.Since(began).Seconds(), 0.2)
		require.Empty(t, b.runtime.Exits(), "the container still runs")
		require.Contains(t, b.output(), "The agent left the shutdown after 2.0 s.")
		require.Contains(t, b.output(), "ns/stubborn: container app was left running, because the agent stopped.")
	})
}

func TestCancelledShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		host := runWithHost(b)
		b.advance(50 * time.Millisecond) // between two calls of refresh
		host.Announce(shutdown.Event{})
		b.advance(time.Second)
		host.Cancel()
		b.advance(10 * time.Second)
		require.Contains(t, b.output(), "The shutdown was called off after 4.0 s.")
		require.Equal(t, 1, strings.Count(b.output(), "gone after 4.0 s"))
		require.Contains(t, b.output(), "   0.1 s  ns/web                   got SIGTERM", "the time counts from when the first pod was told to stop, not from when refresh saw it")
		require.Equal(t, 1, host.Held(), "the agent takes another lock")
		require.True(t, b.running())

		host.Announce(shutdown.Event{})
		b.advance(time.Second)
		require.Zero(t, host.Held(), "nothing was left to stop")
		require.NoError(t, b.terminate())
	})
}

// Without a schedule the agent takes no lock, as a kubelet, and says so.
func TestHostWithoutASchedule(t *testing.T) {
	for name, change := range map[string]func(*testbed){
		"not configured": func(b *testbed) { b.opts.Config = plan.Config{} },
		"gate off":       func(b *testbed) { require.NoError(b.t, b.gate.Set("GracefulNodeShutdown=false")) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *testbed) {
				change(b)
				host := runWithHost(b)
				require.Zero(t, host.Held())
				require.Contains(t, b.output(), "Nothing stops them in order when this machine shuts down")
				host.Announce(shutdown.Event{})
				b.advance(time.Second)
				require.Empty(t, b.runtime.Stops())
				require.NoError(t, b.terminate())
			})
		})
	}
}

func TestLimitedDelayIsAWarning(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		b.opts.Source = &shutdowntest.Host{Limit: 5 * time.Second, Winner: "/etc/systemd/logind.conf.d/zzz.conf"}
		b.addPod("web", 0, "")
		b.run()
		b.advance(time.Second)
		require.Contains(t, b.output(), "Warning: the host delays its shutdown by 5s at most, 32.5s was asked for; the limit is set by /etc/systemd/logind.conf.d/zzz.conf")
		require.Contains(t, b.output(), "This machine's shutdown is held back for up to 5s (asked for: 32.5s).")
		require.NoError(t, b.terminate())
	})
}

func TestNoPodStartsWhileTheHostShutsDown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *testbed) {
		host := &shutdowntest.Host{}
		host.SetPending(&shutdown.Event{})
		b.opts.Source = host
		b.addPod("web", 0, "")
		adopted := b.addPod("adopted", 0, "")
		_, err := b.runtime.StartPod(t.Context(), adopted) // as a former agent has done
		require.NoError(t, err)
		b.run()
		b.advance(time.Second)
		require.Equal(t, "adopted/app", b.stopOrder(), "a pod that ran already is stopped")
		require.Contains(t, b.output(), "does not run: Pod was rejected as the node is shutting down.")
		require.NoError(t, b.terminate())
	})
}
