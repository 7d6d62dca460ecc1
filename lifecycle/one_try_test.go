//go:build go1.25

package lifecycle_test

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// With OneAttempt the first failure ends the call with its error, as in the kubelet. The next
// call goes on where it was, without a second hook, and its grace begins anew if no stop was
// delivered.
func TestTheFirstFailureEndsACallOfOneAttempt(t *testing.T) {
	for name, kill := range map[string]func(*lifeBed) (lifecycle.Outcome, error){
		"a pod": func(b *lifeBed) (lifecycle.Outcome, error) { return b.kill(lifecycle.Request{OneAttempt: true}) },
		"a container": func(b *lifeBed) (lifecycle.Outcome, error) {
			r, err := b.life.KillContainer(b.ctx, lifecycle.Container{Name: "app", ID: "a"}, lifecycle.ContainerRequest{OneAttempt: true})
			return r.Outcome, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inLife(t, func(b *lifeBed) {
				b.spec.Spec.InitContainers, b.takes = nil, 3*time.Second
				log := errorCounter{make(chan error, 10)}
				b.ctx = klog.NewContext(b.ctx, logr.New(log))
				b.runs("app", "a", lifecycletest.Script{FailStops: 2, IgnoreTerm: true})
				for i, want := range []time.Duration{3 * time.Second, 3 * time.Second} {
					outcome, err := kill(b)
					require.ErrorIs(b, err, lifecycletest.ErrScripted)
					require.False(b, hasEnded(outcome), outcome)
					require.Len(b, log.errors, i+1, "its failure is logged once")
					require.Len(b, b.rt.Stops(), i+1)
					require.Equal(b, want, time.Since(b.began))
				}
				<-time.After(100 * time.Second)
				outcome, err := kill(b)
				require.NoError(b, err)
				require.Equal(b, lifecycle.GraceExceeded, outcome)
				b.requireHooks("a")
				require.Len(b, b.rt.Stops(), 3)
				require.EqualValues(b, 60, b.rt.Stops()[2].TimeoutSeconds, "its grace starts anew")
			})
		})
	}
}

// A request may bring its own hook runner.
func TestARequestWithItsOwnHooks(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		own := &lifeBed{T: b.T}
		b.runs("app", "a", lifecycletest.Script{})
		_, err := b.life.KillContainer(b.ctx, lifecycle.Container{Name: "app", ID: "a"}, lifecycle.ContainerRequest{Hooks: own})
		require.NoError(b, err)
		b.runs("proxy", "p", lifecycletest.Script{})
		_, err = b.kill(lifecycle.Request{Hooks: own})
		require.NoError(b, err)
		own.requireHooks("a", "p")
		b.requireHooks()
	})
}

// A call of OneAttempt that was silent may have been delivered: the next one has the old deadline.
func TestASilentStopOfOneAttempt(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		b.spec.Spec.TerminationGracePeriodSeconds = ptr.To(int64(10))
		b.runs("app", "a", lifecycletest.Script{HangStops: 1, FailStops: 1, IgnoreTerm: true})
		for i, want := range []error{lifecycletest.ErrScripted, nil} {
			_, err := b.life.KillContainer(b.ctx, lifecycle.Container{Name: "app", ID: "a"}, lifecycle.ContainerRequest{OneAttempt: true})
			require.ErrorIs(b, err, want)
			require.Len(b, b.rt.Stops(), i+2)
		}
		require.EqualValues(b, 1, b.rt.Stops()[2].TimeoutSeconds, "the rest of the minimum")
	}, func(_ *lifeBed, o *lifecycle.TerminatorOptions) { o.StopSlack = time.Second })
}
