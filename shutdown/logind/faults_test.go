//go:build linux

package logind_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/logindfake"
	"github.com/kubegrace/kubegrace/internal/logindhost"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// A real logind or its bus fails in each state of a shutdown. Afterwards the manager must hold exactly one
// lock, and the next shutdown must be drained and released.
func TestRealFaults(t *testing.T) {
	if !logindhost.InNamespace(t) {
		return
	}
	faults := map[string]func(*logindhost.Host){
		"logind killed":  func(h *logindhost.Host) { h.Kill(); h.Start() },
		"bus restarted":  (*logindhost.Host).RestartBus,
		"logind stopped": func(h *logindhost.Host) { goOn := h.Pause(); time.AfterFunc(500*time.Millisecond, goOn) },
	}
	states := map[string]func(*testing.T, *logindhost.Host, *shutdowntest.Killer){
		"idle": func(*testing.T, *logindhost.Host, *shutdowntest.Killer) {},
		"announced": func(_ *testing.T, h *logindhost.Host, _ *shutdowntest.Killer) {
			h.PowerOff()
		},
		"draining": func(t *testing.T, h *logindhost.Host, killer *shutdowntest.Killer) {
			h.PowerOff()
			require.Eventually(t, func() bool { return len(killer.Kills()) > 0 }, testTimeout, time.Millisecond)
		},
		"cancelled": func(t *testing.T, h *logindhost.Host, _ *shutdowntest.Killer) {
			h.Systemd1.BreakStart(&logindfake.Refusal{Name: "org.freedesktop.systemd1.TransactionIsDestructive", Text: "Transaction is destructive."})
			h.PowerOff()
			awaitPowerOff(t, h) // and refused
			h.Systemd1.BreakStart(nil)
		},
		"released": func(t *testing.T, h *logindhost.Host, _ *shutdowntest.Killer) {
			h.PowerOff()
			awaitPowerOff(t, h)
		},
	}
	for fault, harm := range faults {
		for state, reach := range states {
			t.Run(state+", "+fault, func(t *testing.T) {
				host := logindhost.StartHost(t)
				killer := &shutdowntest.Killer{Default: shutdowntest.Behaviour{Takes: 300 * time.Millisecond}}
				manager := runReadyManager(t, shutdown.Options{Config: buckets, Killer: killer})
				awaitHeld(t, host, manager)
				reach(t, host, killer)
				systemd1 := host.Systemd1
				harm(host)
				isGoingDown := state != "idle" && state != "cancelled"
				if fault == "logind stopped" && isGoingDown { // the other faults make logind forget the shutdown
					if state != "released" {
						awaitPowerOff(t, host)
					}
					host.Systemd1.EndJob("poweroff.target") // this host does not go down after all
				}
				require.Eventually(t, func() bool { return manager.ShutdownStatus() == nil }, testTimeout, time.Millisecond)
				awaitHeld(t, host, manager)
				for len(systemd1.Started) > 0 {
					<-systemd1.Started // of the shutdown before the fault
				}
				host.PowerOff()
				awaitPowerOff(t, host)
				require.Error(t, manager.ShutdownStatus())
			})
		}
	}
}

// logind announces a shutdown at a random moment of the first 6 ms of a new session. The session must
// deliver it as an event or by Pending, and its cancellation too.
func TestAShutdownDuringAReconnectIsDelivered(t *testing.T) {
	h := newHost(t)
	h.login1.SetLimit(30 * time.Second)
	source := h.source(t)
	for range 200 {
		announced := make(chan struct{})
		time.AfterFunc(rand.N(6*time.Millisecond), func() {
			defer close(announced)
			h.login1.Prepare(true)
		})
		session, err := source.Connect(t.Context())
		require.NoError(t, err)
		pending, err := session.Pending(t.Context())
		require.NoError(t, err)
		if pending == nil {
			require.False(t, nextEvent(t, session).Cancelled)
		}
		<-announced
		h.login1.SetPreparing(false)
		event := nextEvent(t, session)
		if pending != nil && !event.Cancelled {
			event = nextEvent(t, session) // the signal came before the reply
		}
		require.True(t, event.Cancelled)
		require.NoError(t, session.Close())
	}
}

// 50 managers lose logind 5 times: 250 reconnects, in parallel because each takes a second. All must hold a lock again,
// and nothing may leak.
func TestManyManagersReconnect(t *testing.T) {
	const managers, rounds = 50, 5
	h := newHost(t)
	h.login1.SetLimit(time.Minute)
	source := h.source(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, managers)
	t.Cleanup(func() {
		stop()
		for range managers {
			require.NoError(t, <-ended)
		}
	})
	var all []*shutdown.Manager
	for range managers {
		manager, err := shutdown.NewManager(shutdown.Options{Config: buckets, Killer: &shutdowntest.Killer{}, ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return nil }, nil), Source: source})
		require.NoError(t, err)
		all = append(all, manager)
		go func() { ended <- manager.Run(ctx) }()
	}
	var descriptors, goroutines int
	for round := range rounds + 1 {
		require.Eventually(t, func() bool {
			for _, manager := range all {
				if status := manager.Inhibitor(); !status.Held || status.Err != nil {
					return false
				}
			}
			return len(h.login1.Held()) == managers
		}, 3*testTimeout, 5*time.Millisecond, "round %d", round)
		if round == 0 {
			descriptors, goroutines = openDescriptors(t), runtime.NumGoroutine()
		}
		if round < rounds {
			before := h.login1
			h.login1.Close()
			require.Eventually(t, func() bool {
				for _, manager := range all {
					if manager.Inhibitor().Err == nil {
						return false
					}
				}
				return true
			}, testTimeout, time.Millisecond)
			h.login1 = logindfake.StartLogin1(t, h.bus.Address)
			h.login1.SetLimit(time.Minute)
			t.Cleanup(func() { require.Empty(t, before.Held()) })
		}
	}
	requireNoGrowth(t, descriptors, goroutines)
}
