//go:build go1.25

package apistatus_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// timingReporter is a reporter that records when the last final status was acknowledged.
type timingReporter struct {
	*apistatus.Reporter

	mu   sync.Mutex
	last time.Time
}

// FlushPod sends the final status, and records the time if the API server has accepted it.
func (r *timingReporter) FlushPod(ctx context.Context, pod *v1.Pod) error {
	err := r.Reporter.FlushPod(ctx, pod)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.last = time.Now()
	}
	return err
}

// lastAcknowledged returns when the API server accepted the last final status.
func (r *timingReporter) lastAcknowledged() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// A slow API server acknowledges every final status before the inhibitor lock is released, whether the
// pods end at once or use all their grace. The required times allow for a busy machine.
func TestARealServerAcknowledgesAllStatusesBeforeTheLockIsReleased(t *testing.T) {
	for _, test := range []struct {
		pods  int
		delay time.Duration // of each request
		takes time.Duration // until a pod ends; an hour: it uses all its grace period
	}{
		{1, 0, 0},
		{1, 100 * time.Millisecond, time.Hour},
		{30, 20 * time.Millisecond, time.Hour},
		{30, 100 * time.Millisecond, 0},
		{500, 0, time.Hour},
		{500, 20 * time.Millisecond, 0},
		{500, 100 * time.Millisecond, time.Hour},
	} {
		name := fmt.Sprintf("%d pods, %v a request, at once", test.pods, test.delay)
		if test.takes > 0 {
			name = fmt.Sprintf("%d pods, %v a request, all their grace", test.pods, test.delay)
		}
		t.Run(name, func(t *testing.T) {
			server, _, pods := serveWithPods(t, test.pods)
			server.register(nodeOf(ready))
			server.Script(apiserverproxy.Always(apiserverproxy.Fault{Delay: test.delay}))
			reporter := &timingReporter{Reporter: server.reporter(time.Minute)}
			a := newAgent(t, reporter, pods...)
			a.opts.Config = plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 2 * time.Second}}
			a.opts.Plan.StatusesTimeout = 30 * time.Second // an upper bound
			a.killer.Default = shutdowntest.Behaviour{Takes: test.takes}
			a.run()
			defer a.end()
			began := time.Now()
			a.host.Announce(source.Event{Kind: source.KindPoweroff, Deadline: began.Add(time.Minute)})
			report := a.awaitRelease()
			released, _ := a.host.Released()
			t.Logf("released after %v, %v after the last answer", released.Sub(began).Round(time.Millisecond), released.Sub(reporter.lastAcknowledged()).Round(time.Millisecond))
			require.Empty(t, unflushedNames(report))
			require.Equal(t, test.pods, server.terminated())
			require.Less(t, released.Sub(reporter.lastAcknowledged()), 2*time.Second)
		})
	}
}
