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

func TestIdleSignals(t *testing.T) {
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
			inBubble(t, func(t *testing.T, b *bench) {
				host := &shutdowntest.Host{}
				if test.host {
					b.opts.Source = host
				}
				b.pod("web", 0, "")
				b.run()
				b.signals <- test.signal
				require.NoError(t, b.end())
				require.Equal(t, test.drains, len(b.runtime.Stops()) > 0)
				require.Zero(t, host.Held(), "the lock is released")
				require.NoError(t, host.Err())
			})
		})
	}
}

// hosted makes an agent with a host and one pod that takes 4 s to stop.
func hosted(b *bench) *shutdowntest.Host {
	host := &shutdowntest.Host{}
	b.opts.Source = host
	b.pod("web", 0, "exits 4s after TERM")
	b.run()
	return host
}

func TestHostShutsDown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		host := hosted(b)
		require.Equal(t, 1, host.Held())
		b.pass(time.Second)
		require.Contains(t, b.output(), "This machine's shutdown is held back")

		host.Announce(shutdown.Event{Kind: shutdown.KindPoweroff})
		b.pass(3 * time.Second)
		require.Equal(t, 1, host.Held(), "held while a pod is being stopped")
		b.pass(2 * time.Second)
		require.Zero(t, host.Held())
		require.True(t, b.running(), "the machine will stop the agent")
		require.Equal(t, 1, strings.Count(b.output(), "1 of 1 pod stopped in time."))
		require.Contains(t, b.told, "STATUS=The pods have been stopped")

		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
	})
}

// systemd tells the agent to stop as soon as the lock is released, which may be
// before the agent has seen the end of its own shutdown.
func TestSignalDuringADrainOfTheHost(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		host := hosted(b)
		host.Announce(shutdown.Event{})
		b.pass(time.Second)
		b.signals <- syscall.SIGTERM
		b.pass(time.Second)
		require.True(t, b.running(), "the drain goes on")
		require.Contains(t, b.output(), "SIGTERM: the pods are being stopped, and that goes on.")
		require.NoError(t, b.end(), "it leaves when the pods have stopped")
		require.Contains(t, b.output(), "1 of 1 pod stopped in time.")
	})
}

func TestSecondSignalEndsTheWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.pod("stubborn", 0, "ignores TERM")
		b.run()
		began := time.Now()
		b.signals <- syscall.SIGTERM
		b.pass(time.Second)
		b.signals <- syscall.SIGTERM
		b.pass(time.Second)
		require.True(t, b.running())
		b.signals <- syscall.SIGTERM
		require.ErrorContains(t, b.end(), "a second SIGTERM ended the waiting for ns/stubborn")
		require.InDelta(t, 2, time.Since(began).Seconds(), 0.2)
		require.Empty(t, b.runtime.Exits(), "it still runs")
		require.Contains(t, b.output(), "The agent left the shutdown after 2.0 s.")
		require.Contains(t, b.output(), "ns/stubborn: container app was left running, because the agent stopped.")
	})
}

func TestCancelledShutdown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		host := hosted(b)
		b.pass(50 * time.Millisecond) // between two looks of the agent
		host.Announce(shutdown.Event{})
		b.pass(time.Second)
		host.Cancel()
		b.pass(10 * time.Second)
		require.Contains(t, b.output(), "The shutdown was called off after 4.0 s.")
		require.Equal(t, 1, strings.Count(b.output(), "gone after 4.0 s"))
		require.Contains(t, b.output(), "   0.1 s  ns/web                   got SIGTERM", "counted from when the first pod was told, not from when that was seen")
		require.Equal(t, 1, host.Held(), "held again")
		require.True(t, b.running())

		host.Announce(shutdown.Event{})
		b.pass(time.Second)
		require.Zero(t, host.Held(), "nothing was left to stop")
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
	})
}

// Without a schedule nothing is held back, as in a kubelet, and that is said.
func TestHostWithoutASchedule(t *testing.T) {
	for name, change := range map[string]func(*bench){
		"not configured": func(b *bench) { b.opts.Config = plan.Config{} },
		"gate off":       func(b *bench) { require.NoError(b.t, b.gate.Set("GracefulNodeShutdown=false")) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bench) {
				change(b)
				host := hosted(b)
				require.Zero(t, host.Held())
				require.Contains(t, b.output(), "Nothing stops them in order when this machine shuts down")
				host.Announce(shutdown.Event{})
				b.pass(time.Second)
				require.Empty(t, b.runtime.Stops())
				b.signals <- syscall.SIGTERM
				require.NoError(t, b.end())
			})
		})
	}
}

func TestCappedDelayIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.opts.Source = &shutdowntest.Host{Limit: 5 * time.Second, Winner: "/etc/systemd/logind.conf.d/zzz.conf"}
		b.pod("web", 0, "")
		b.run()
		b.pass(time.Second)
		require.Contains(t, b.output(), "Warning: the host delays its shutdown by 5s at most, 32.5s was asked for; the limit is set by /etc/systemd/logind.conf.d/zzz.conf")
		require.Contains(t, b.output(), "This machine's shutdown is held back for up to 5s (asked for: 32.5s).")
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
	})
}

func TestNoPodStartsWhileTheHostShutsDown(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		host := &shutdowntest.Host{}
		host.SetPending(&shutdown.Event{})
		b.opts.Source = host
		b.pod("web", 0, "")
		left := b.pod("left", 0, "")
		_, err := b.runtime.StartPod(t.Context(), left) // by an earlier life of the agent
		require.NoError(t, err)
		b.run()
		b.pass(time.Second)
		require.Equal(t, "left/app", b.order(), "what ran is stopped")
		require.Contains(t, b.output(), "does not run: Pod was rejected as the node is shutting down.")
		b.signals <- syscall.SIGTERM
		require.NoError(t, b.end())
	})
}
