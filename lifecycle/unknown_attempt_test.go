//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// unknownStarts are the start functions after which a container may run or not.
func unknownStarts() map[string]func(context.Context) (string, error) {
	return map[string]func(context.Context) (string, error){
		"failed":   func(context.Context) (string, error) { return "", errors.New("a reply was lost") },
		"panicked": func(context.Context) (string, error) { panic("boom") },
		"no ID":    func(context.Context) (string, error) { return "", nil },
		"cut":      func(ctx context.Context) (string, error) { <-ctx.Done(); return "", context.Cause(ctx) },
		"late": func(ctx context.Context) (string, error) {
			<-ctx.Done()
			<-time.After(90 * time.Second)
			return "", errors.New("too late")
		},
	}
}

// A container that may run is RuntimeStuck however often one asks, also if a request names the
// exited one before it.
func TestWhatMayRunIsNeverSaidToHaveEnded(t *testing.T) {
	for name, start := range unknownStarts() {
		t.Run(name, func(t *testing.T) {
			inLife(t, func(b *lifeBed) {
				b.runs("app", "old", lifecycletest.Script{ExitAfter: time.Second})
				<-time.After(2 * time.Second)
				go func() { _ = b.life.Start(b.ctx, "app", start) }()
				<-time.After(time.Second)
				for _, req := range []lifecycle.Request{{}, {}, {Containers: only("app", "old")}, {Containers: only("proxy", "p")}, {Containers: []lifecycle.Container{}}} {
					outcome, err := b.kill(req)
					require.Equal(b, lifecycle.RuntimeStuck, outcome)
					require.Error(b, err)
				}
				<-time.After(2 * time.Minute)
				outcome, err := b.kill(lifecycle.Request{})
				require.Equal(b, lifecycle.RuntimeStuck, outcome)
				require.Error(b, err)
				require.Error(b, b.start("app", "new", lifecycletest.Script{}), "no start before Forget")
			})
		})
	}
}

// Only some things prove that such a container has ended.
func TestProofsOfAnEnd(t *testing.T) {
	const started = 10 * time.Second // after the beginning of the test
	state := func(s func(time.Time) v1.ContainerState, at time.Duration) func(*lifeBed) (*v1.Pod, lifecycle.Request) {
		return func(b *lifeBed) (*v1.Pod, lifecycle.Request) {
			return b.showing("other", s(b.began.Add(at))), lifecycle.Request{}
		}
	}
	for name, test := range map[string]struct {
		request func(*lifeBed) (*v1.Pod, lifecycle.Request)
		proves  bool
	}{
		"a complete list without it": {func(b *lifeBed) (*v1.Pod, lifecycle.Request) { return b.spec, lifecycle.Request{Complete: true} }, true},
		"terminated after the start": {state(terminatedAt, started+3*time.Second), true},
		"a later one is running":     {state(runningSince, started+3*time.Second), true},
		"terminated before":          {state(terminatedAt, started-3*time.Second), false},
		"an earlier one is running":  {state(runningSince, started-3*time.Second), false},
		"waiting": {func(b *lifeBed) (*v1.Pod, lifecycle.Request) {
			return b.showing("", v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}), lifecycle.Request{}
		}, false},
		"no status": {func(b *lifeBed) (*v1.Pod, lifecycle.Request) { return b.spec, lifecycle.Request{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			inLife(t, func(b *lifeBed) {
				<-time.After(started)
				require.Error(b, b.life.Start(b.ctx, "app", unknownStarts()["panicked"]))
				<-time.After(started)
				pod, req := test.request(b)
				pod.Spec.InitContainers = nil
				for range 2 {
					result, err := b.tr.KillPod(b.ctx, pod, req)
					require.Equal(b, test.proves, err == nil, "%+v %v", result, err)
					require.Equal(b, test.proves, result.Outcome() != lifecycle.RuntimeStuck)
				}
			})
		})
	}
}

// A start that says that nothing runs leaves nothing unknown.
func TestAStartThatFoundNoContainer(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		require.Error(b, b.life.Start(b.ctx, "app", func(context.Context) (string, error) { return "", lifecycle.ErrContainerNotFound }))
		b.runs("app", "a2", lifecycletest.Script{})
		b.runs("proxy", "p", lifecycletest.Script{})
		outcome, err := b.kill(lifecycle.Request{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.Graceful, outcome)
	})
}
