package shutdown

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/store"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// slowPods is a killer whose pods use all of their grace periods. It counts them.
type slowPods struct{ killed chan string }

func (s slowPods) KillPod(ctx context.Context, pod *v1.Pod, r KillRequest) (KillResult, error) {
	s.killed <- pod.Name
	select {
	case <-time.After(time.Duration(*r.GracePeriodSeconds) * time.Second):
		return KillResult{}, nil
	case <-ctx.Done():
		return KillResult{}, ctx.Err()
	}
}

// NewManager has read the record, and then the disk fails, so that Run cannot read it again. The
// shutdown that NewManager has found goes on, and is on record again.
func TestRecordThatRunCannotRead(t *testing.T) {
	opts := Options{Config: plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}}, StateDir: t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		pod, seconds := identity("default", "web", "uid-web"), int64(60)
		pod.Spec.TerminationGracePeriodSeconds = &seconds
		slow := slowPods{make(chan string, 10)}
		opts.Killer, opts.Pods = slow, PodsFunc(func() []*v1.Pod { return []*v1.Pod{pod} })
		began := time.Now()
		boot := func() (string, time.Duration, error) { return "one", time.Since(began) + time.Hour, nil }
		run := func(m *Manager) (stop func()) {
			ctx, end := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- m.Run(ctx) }()
			<-m.Ready()
			<-time.After(time.Second)
			return func() { end(); require.NoError(t, <-ended) }
		}
		m, err := NewManagerOn(opts, boot)
		require.NoError(t, err)
		stop := run(m)
		require.NoError(t, m.Trigger(Event{Origin: "notice"}))
		<-time.After(5 * time.Second)
		stop()

		m, err = NewManagerOn(opts, boot)
		require.NoError(t, err)
		failing := store.New(store.Options{Dir: opts.StateDir, Boot: boot, Read: func(string) ([]byte, error) { return nil, errors.New("input/output error") }})
		m.ledger.store, m.ledger.recorder.store = failing, failing
		stop = run(m)
		require.Error(t, m.ShutdownStatus())
		<-time.After(time.Minute)
		stop()
		require.Len(t, slow.killed, 2)
		report, _, err := StoredReport(opts.StateDir)
		require.NoError(t, err)
		require.True(t, report.Started.After(began))
		require.Len(t, report.Pods, 1)
		require.NotZero(t, report.Pods[0].Ended)
	})
}
