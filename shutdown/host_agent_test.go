//go:build go1.25

package shutdown_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// errorCount counts the errors that are logged.
type errorCount struct{ errors atomic.Int64 }

func (*errorCount) Init(klog.RuntimeInfo)            {}
func (*errorCount) Enabled(int) bool                 { return false }
func (*errorCount) Info(int, string, ...any)         {}
func (c *errorCount) Error(error, string, ...any)    { c.errors.Add(1) }
func (c *errorCount) WithValues(...any) klog.LogSink { return c }
func (c *errorCount) WithName(string) klog.LogSink   { return c }
func (c *errorCount) logger() klog.Logger            { return klog.New(c) }
func (c *errorCount) requireErrors(t *testing.T, want int64, of any) {
	t.Helper()
	require.Equal(t, want, c.errors.Load(), "%v", of)
}

// hostAgent is an agent with a state folder that runs in real time and on the boot of this
// host, outside of a bubble.
type hostAgent struct {
	t      *testing.T
	m      *shutdown.Manager
	host   shutdowntest.Host
	killer shutdowntest.Killer
	log    errorCount
	end    func() error

	reports chan shutdown.Report
}

func newHostAgent(t *testing.T, dir string) *hostAgent {
	t.Helper()
	a := &hostAgent{t: t, reports: make(chan shutdown.Report, 10)}
	var err error
	a.m, err = shutdown.NewManager(shutdown.Options{
		Config: plan.Config{ShutdownGracePeriodByPodPriority: []plan.PodPriorityGracePeriod{
			{Priority: 0, ShutdownGracePeriodSeconds: 2}, {Priority: topPriority, ShutdownGracePeriodSeconds: 1},
		}},
		Pods:     shutdown.PodsFunc(twoPods),
		Killer:   &a.killer,
		Source:   &a.host,
		StateDir: dir,
		OnReport: func(_ context.Context, report shutdown.Report) { a.reports <- report },
	})
	require.NoError(t, err)
	return a
}

// run starts the agent, which ends with the test or when end is called, and waits until it is
// ready.
func (a *hostAgent) run() {
	a.t.Helper()
	ctx, stop := context.WithCancel(klog.NewContext(a.t.Context(), a.log.logger()))
	ended := make(chan error, 1)
	go func() { ended <- a.m.Run(ctx) }()
	a.end = func() error {
		stop()
		err := <-ended
		ended <- err
		return err
	}
	a.t.Cleanup(func() { _ = a.end() }) // tests check the error where it matters
	<-a.m.Ready()
}

// shutDownAndCancel makes the host announce a shutdown and cancel it after the drain. It
// returns the report of the drain.
func (a *hostAgent) shutDownAndCancel() shutdown.Report {
	a.t.Helper()
	kills := len(a.killer.Kills())
	a.host.Announce(shutdown.Event{Origin: fmt.Sprint("after ", kills)})
	report := a.nextReport()
	require.Equal(a.t, fmt.Sprint("after ", kills), report.Origin)
	require.Zero(a.t, a.host.Held())
	require.Len(a.t, a.killer.Kills(), kills+2)
	require.False(a.t, a.m.Admit(nil).Admit)
	a.host.Cancel()
	require.Eventually(a.t, func() bool { return a.m.Admit(nil).Admit && a.host.Held() == 1 }, 10*time.Second, time.Millisecond)
	return report
}

// nextReport waits for the next shutdown that is over and returns its report.
func (a *hostAgent) nextReport() shutdown.Report {
	a.t.Helper()
	select {
	case report := <-a.reports:
		require.NotZero(a.t, report.Ended)
		return report
	case <-time.After(20 * time.Second):
		require.Fail(a.t, "the shutdown does not end")
		return shutdown.Report{}
	}
}
