//go:build linux

package logind_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindhost"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// A real logind or its bus fails in each state of a shutdown. When the shutdown is over, because logind has forgotten it or
// its job has ended, the manager must hold exactly one lock. It must release that lock for the next shutdown.
func TestRealFaults(t *testing.T) {
	if !logindhost.InNamespace(t) {
		return
	}
	faults := map[string]func(*logindhost.Host){
		"logind killed": func(h *logindhost.Host) { h.Kill(); h.Start() },
		"bus restarted": (*logindhost.Host).RestartBus,
		"logind paused": func(h *logindhost.Host) { resume := h.Pause(); time.AfterFunc(500*time.Millisecond, resume) },
	}
	states := map[string]func(*testing.T, *logindhost.Host, *shutdowntest.Killer){
		"idle": func(*testing.T, *logindhost.Host, *shutdowntest.Killer) {},
		"draining": func(t *testing.T, h *logindhost.Host, killer *shutdowntest.Killer) {
			h.PowerOff()
			require.Eventually(t, func() bool { return len(killer.Kills()) > 0 }, testTimeout, time.Millisecond)
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
				systemd1 := host.Systemd1 // a restart of the bus replaces it
				harm(host)
				remembersShutdown := fault == "logind paused" // the other faults make logind forget a shutdown
				if remembersShutdown && state == "draining" {
					awaitPowerOff(t, host)
				}
				if remembersShutdown && state != "idle" {
					host.Systemd1.EndJob("poweroff.target") // this host does not go down after all
				}
				require.Eventually(t, func() bool { return manager.ShutdownStatus() == nil }, testTimeout, time.Millisecond)
				awaitHeld(t, host, manager)

				// The next shutdown. What systemd has started for the one before the fault does not count.
				for len(systemd1.Started) > 0 {
					<-systemd1.Started
				}
				host.PowerOff()
				awaitPowerOff(t, host)
				require.Error(t, manager.ShutdownStatus())
			})
		}
	}
}

// logind announces a shutdown at a random moment of the first 6 ms of a new session. Pending or an event must deliver
// the shutdown; both do if the signal arrives before Pending's reply. logind then cancels the shutdown without a signal,
// which the session must find out by polling: the last event is the cancellation. The test repeats this 200 times.
func TestAShutdownDuringConnectIsDelivered(t *testing.T) {
	h := newHost(t)
	h.login1.SetLimit(30 * time.Second)
	source := h.source(t)
	for range 200 {
		announced := make(chan struct{})
		time.AfterFunc(rand.N(6*time.Millisecond), func() {
			defer close(announced)
			h.announceShutdown()
		})
		session, err := source.Connect(t.Context())
		require.NoError(t, err)
		pending, err := session.Pending(t.Context())
		require.NoError(t, err)
		if pending == nil {
			requireAnnounced(t, session)
		}
		<-announced
		h.endShutdownSilently()
		event := nextEvent(t, session)
		if pending != nil && !event.Cancelled {
			event = nextEvent(t, session) // the first was the announcement, which Pending has returned too
		}
		require.True(t, event.Cancelled)
		require.NoError(t, session.Close())
	}
}
