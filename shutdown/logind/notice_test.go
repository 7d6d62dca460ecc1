//go:build linux

package logind_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/logindfake"
	"github.com/kubegrace/kubegrace/internal/need"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/notice"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// azure is Azure's metadata service on the machine "node".
type azure struct {
	mu     sync.Mutex
	events []map[string]any
}

// ServeHTTP answers with the scheduled events, or with the machine's name.
func (z *azure) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metadata/scheduledevents" {
		fmt.Fprint(w, "node")
		return
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]any{"DocumentIncarnation": 1, "Events": z.events}) // the client may have gone
}

// preempt announces a preemption after a time; 0 withdraws it.
func (z *azure) preempt(in time.Duration) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.events = nil
	if in > 0 {
		z.events = []map[string]any{{
			"EventId": "A", "EventType": "Preempt", "EventStatus": "Scheduled", "Resources": []string{"node"},
			"NotBefore": time.Now().Add(in).UTC().Format(http.TimeFormat),
		}}
	}
}

// A notice 120 s ahead and logind's announcement are one shutdown with one report: the earlier deadline
// counts, in any order, and each is cancelled separately. The first deadline leaves the pod web its whole
// grace period of 30 s.
func TestANoticeAndLogindAreOneShutdown(t *testing.T) {
	need.Long(t, "a cloud's notice beside logind's event, in real time")
	type node struct {
		*shutdown.Manager
		*azure
		*logindfake.Login1
		lock    *logindfake.Lock
		killer  *shutdowntest.Killer
		reports chan shutdown.Report
	}
	// awaitKill returns the seconds of the call of the killer with this number.
	awaitKill := func(t *testing.T, n node, number int) int64 {
		t.Helper()
		require.Eventually(t, func() bool { return len(n.killer.Kills()) > number }, testTimeout, time.Millisecond)
		return *n.killer.Kills()[number].Request.GracePeriodSeconds
	}
	// requireEnd requires that the drain ends within the given time, which shortens the kill in progress.
	requireEnd := func(t *testing.T, n node, within time.Duration) {
		t.Helper()
		began := time.Now()
		require.LessOrEqual(t, awaitKill(t, n, 1), int64(within.Seconds()), "the kill in progress is shortened")
		awaitReleased(t, n.lock)
		require.Less(t, time.Since(began), within+time.Second)
		require.False(t, (<-n.reports).Cancelled)
	}
	for name, test := range map[string]struct {
		limit, takes time.Duration // logind's limit, and the time that a pod needs to end
		run          func(*testing.T, node)
	}{
		"a notice, overtaken by logind": {2 * time.Second, time.Hour, func(t *testing.T, n node) {
			n.preempt(2 * time.Minute)
			require.Equal(t, int64(30), awaitKill(t, n, 0))
			n.Prepare(true)
			requireEnd(t, n, 2*time.Second)
		}},
		"logind, overtaken by a notice": {100 * time.Second, time.Hour, func(t *testing.T, n node) {
			n.Prepare(true)
			require.Equal(t, int64(30), awaitKill(t, n, 0))
			n.preempt(4 * time.Second)
			requireEnd(t, n, 4*time.Second)
		}},
		"a notice that is taken back": {2 * time.Second, 3 * time.Second, func(t *testing.T, n node) {
			n.preempt(2 * time.Minute)
			awaitKill(t, n, 0)
			n.preempt(0)
			require.True(t, (<-n.reports).Cancelled)
			require.NoError(t, n.ShutdownStatus())
			require.Eventually(t, func() bool { return len(n.Held()) == 1 && n.Inhibitor().Held }, testTimeout, time.Millisecond)
			require.Len(t, n.killer.Kills(), 1)
		}},
		"a notice that is taken back, and logind's stays": {2 * time.Second, time.Hour, func(t *testing.T, n node) {
			n.preempt(2 * time.Minute)
			awaitKill(t, n, 0)
			n.Prepare(true)
			n.preempt(0)
			requireEnd(t, n, 2*time.Second)
			require.Error(t, n.ShutdownStatus())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.login1.SetLimit(test.limit)
			n := node{azure: &azure{}, Login1: h.login1, reports: make(chan shutdown.Report, 2), killer: &shutdowntest.Killer{Default: shutdowntest.Behaviour{Takes: test.takes}}}
			n.Manager = runManagerOn(t, h.source(t), shutdown.Options{
				Config: plan.Config{ShutdownGracePeriodByPodPriority: []plan.PodPriorityGracePeriod{
					{Priority: 0, ShutdownGracePeriodSeconds: 60}, {Priority: 1000, ShutdownGracePeriodSeconds: 30},
				}},
				Killer: n.killer, OnReport: func(_ context.Context, r shutdown.Report) { n.reports <- r },
			})
			require.Eventually(t, func() bool { return len(h.login1.Held()) == 1 }, testTimeout, time.Millisecond)
			n.lock = h.login1.Held()[0]
			server := httptest.NewServer(n.azure)
			provider := notice.Azure()
			provider.Endpoint = server.URL
			ctx, stop := context.WithCancel(t.Context())
			watched := make(chan error, 1)
			go func() { watched <- notice.Watch(ctx, provider, n.Trigger) }()
			test.run(t, n)
			stop()
			require.NoError(t, <-watched)
			server.Close()
			require.Empty(t, n.reports, "one report")
		})
	}
}
