//go:build go1.25

package lifecycle_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A second Start of a name does not drop the container of the first, which is stopped too: with
// its hook only if something shows that it runs.
func TestASecondStartKeepsTheFirst(t *testing.T) {
	for name, test := range map[string]struct {
		options []func(*lifeBed, *lifecycle.TerminatorOptions)
		request lifecycle.Request
		hooks   []string
	}{
		"nothing shows it":       {nil, lifecycle.Request{}, []string{"c2"}},
		"its channel is open":    {[]func(*lifeBed, *lifecycle.TerminatorOptions){watched}, lifecycle.Request{}, []string{"c1", "c2"}},
		"a list has it":          {nil, lifecycle.Request{Containers: only("app", "c1")}, []string{"c1", "c2"}},
		"a complete list has it": {nil, lifecycle.Request{Containers: only("app", "c1"), Complete: true}, []string{"c1", "c2"}},
	} {
		t.Run(name, func(t *testing.T) {
			inLife(t, func(b *lifeBed) {
				b.runs("app", "c1", lifecycletest.Script{})
				b.runs("app", "c2", lifecycletest.Script{})
				outcome, err := b.kill(test.request)
				require.NoError(b, err)
				require.Equal(b, lifecycle.Graceful, outcome)
				b.requireStops("c1", "c2")
				b.requireHooks(test.hooks...)
				b.requireExited("c1")
			}, append(test.options, func(b *lifeBed, _ *lifecycle.TerminatorOptions) { b.spec.Spec.InitContainers = nil })...)
		})
	}
}

// However one container is named, it is one: one hook, one stop, one event.
func TestOneContainerIsOneAttempt(t *testing.T) {
	slowly := lifecycletest.Script{StartTakes: 2 * time.Second, StartDeaf: true}
	for name, play := range map[string]func(b *lifeBed){
		"the ID of a start that has not returned": func(b *lifeBed) {
			go func() { _ = b.start("app", "c1", slowly) }()
			<-time.After(time.Second)
			_, err := b.kill(lifecycle.Request{Containers: only("app", "c1")})
			require.NoError(b, err)
		},
		"the same, killed alone": func(b *lifeBed) {
			go func() { _ = b.start("app", "c1", slowly) }()
			<-time.After(time.Second)
			go func() {
				_, _ = b.life.KillContainer(b.ctx, lifecycle.Container{Name: "app", ID: "c1"}, lifecycle.ContainerRequest{})
			}()
			<-time.After(500 * time.Millisecond)
			_, err := b.kill(lifecycle.Request{})
			require.NoError(b, err)
		},
		"a postStart hook inside of its start": func(b *lifeBed) {
			go func() {
				_ = b.life.Start(b.ctx, "app", func(ctx context.Context) (string, error) {
					b.rt.Start("c1", lifecycletest.Script{})
					return "c1", b.life.PostStart(ctx, lifecycle.Container{Name: "app", ID: "c1"})
				})
			}()
			<-time.After(time.Second)
			_, err := b.kill(lifecycle.Request{})
			require.NoError(b, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inLife(t, func(b *lifeBed) {
				b.spec.Spec.InitContainers = nil
				b.takes = 5 * time.Second
				play(b)
				b.requireHooks("c1")
				b.requireExited("c1")
				require.Len(b, b.events.All(), 1)
				b.requireStops("c1")
			}, watched)
		})
	}
}

// A status has whole seconds: one that shows a container running since the second in which it has
// ended does not show a new one.
func TestAContainerThatEndedInTheSecondOfItsStart(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		b.spec.Spec.InitContainers = nil
		<-time.After(200 * time.Millisecond)
		b.runs("app", "c1", lifecycletest.Script{ExitAfterTerm: 300 * time.Millisecond})
		for _, pod := range []*v1.Pod{b.spec, b.showing("c1", runningSince(b.began)), b.showing("c1", runningSince(b.began))} {
			_, err := b.tr.KillPod(b.ctx, pod, lifecycle.Request{})
			require.NoError(b, err)
		}
		b.requireHooks("c1")
		require.Len(b, b.events.All(), 1)
	})
}

// A sidecar that is started again while its pod is terminated is one container under each ID,
// also for a status that lags and for a list that has the ID before the start returns.
func TestARestartedSidecarIsNotStoppedTwice(t *testing.T) {
	for name, ids := range map[string][2]string{"a list that lags": {"p1", "p1"}, "a list that is early": {"p2", "p2"}, "both": {"p1", "p2"}} {
		t.Run(name, func(t *testing.T) {
			inLife(t, func(b *lifeBed) {
				b.runs("app", "a", lifecycletest.Script{ExitAfterTerm: 10 * time.Second})
				b.runs("proxy", "p1", lifecycletest.Script{})
				term := b.life.Terminate(b.ctx, lifecycle.Request{})
				<-time.After(time.Second)
				b.rt.Exit("p1")
				started := make(chan error, 1)
				go func() {
					started <- b.start("proxy", "p2", lifecycletest.Script{StartTakes: 2 * time.Second, ExitAfterTerm: time.Second})
				}()
				<-time.After(time.Second)
				b.life.Terminate(b.ctx, lifecycle.Request{Containers: only("proxy", ids[0])})
				<-time.After(3 * time.Second)
				b.life.Terminate(b.ctx, lifecycle.Request{Containers: only("proxy", ids[1])})
				require.NoError(b, <-started)
				_, err := term.Wait(b.ctx)
				require.NoError(b, err)
				synctest.Wait()
				b.requireStops("a", "p2")
				b.requireExited("p2")
				times := map[string]int{}
				for _, id := range b.hooks {
					times[id]++
				}
				for id, n := range times {
					require.Equal(b, 1, n, "hooks of %s", id)
				}
			}, watched)
		})
	}
}

// A container that was given up keeps its own deadline: it is not asked again with what the pod
// has left.
func TestAStuckContainerKeepsItsOwnDeadline(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		b.runs("app", "c1", lifecycletest.Script{IgnoreTerm: true, FailStops: -1})
		b.life.Terminate(b.ctx, lifecycle.Request{})
		five := int64(5)
		go func() {
			_, _ = b.life.KillContainer(b.ctx, lifecycle.Container{Name: "app", ID: "c1"}, lifecycle.ContainerRequest{GracePeriodSeconds: &five})
		}()
		<-time.After(20 * time.Second) // app was given up after 10 s
		outcome, err := b.kill(lifecycle.Request{})
		require.Error(b, err)
		require.Equal(b, lifecycle.RuntimeStuck, outcome)
		again := 0
		for _, s := range b.rt.Stops() {
			if s.ID == "c1" && s.At.Sub(b.began) >= 20*time.Second {
				require.Zero(b, s.TimeoutSeconds)
				again++
			}
		}
		require.Positive(b, again)
		b.requireHooks("c1")
	})
}

// An ID that has ended may be that of a new container: the runtime is asked again, unless the
// ExitWatcher says that it has ended; with a hook only if a status says that it was started since.
func TestAnIDThatIsUsedAgainInItsSlot(t *testing.T) {
	c := lifecycle.Container{Name: "app", ID: "web"}
	inLife(t, func(b *lifeBed) {
		b.spec.Spec.InitContainers = nil
		for range 3 {
			b.rt.Start("web", lifecycletest.Script{})
			r, err := b.life.KillContainer(b.ctx, c, lifecycle.ContainerRequest{})
			require.NoError(b, err)
			require.Equal(b, lifecycle.Graceful, r.Outcome)
			b.requireExited("web")
		}
		b.requireStops("web", "web", "web")
		b.requireHooks("web")
		for range 2 {
			<-time.After(10 * time.Second)
			b.rt.Start("web", lifecycletest.Script{IgnoreTerm: true})
			ten := int64(10)
			_, err := b.tr.KillPod(b.ctx, b.showing("web", runningSince(time.Now())), lifecycle.Request{GracePeriodSeconds: &ten})
			require.NoError(b, err)
			b.requireExited("web")
		}
		b.requireHooks("web", "web", "web")
		require.EqualValues(b, 10, b.rt.Stops()[3].TimeoutSeconds, "the grace of this request")
		require.EqualValues(b, 10, b.rt.Stops()[4].TimeoutSeconds, "the grace of this request")
	})
	inLife(t, func(b *lifeBed) {
		b.rt.Start("web", lifecycletest.Script{})
		for range 2 {
			_, err := b.life.KillContainer(b.ctx, c, lifecycle.ContainerRequest{})
			require.NoError(b, err)
		}
		b.requireStops("web")
	}, watched)
}

// A start time that is exactly the second of the end is a new start, if the container is known to
// have been started before.
func TestAnIDThatIsUsedAgainInTheSecondOfTheEnd(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		b.spec.Spec.InitContainers = nil
		<-time.After(2 * time.Second)
		for i := range 2 {
			<-time.After(time.Duration(i) * 300 * time.Millisecond)
			b.rt.Start("a", lifecycletest.Script{})
			_, err := b.tr.KillPod(b.ctx, b.showing("a", runningSince(b.began.Add(time.Duration(2*i)*time.Second))), lifecycle.Request{})
			require.NoError(b, err)
		}
		b.requireHooks("a", "a")
	})
}

// Eight attempts of a container are kept, and no less.
func TestEightAttemptsAreKept(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		b.spec.Spec.InitContainers = nil
		var kept []string
		for i := range 9 {
			id := fmt.Sprint("c", i)
			b.runs("app", id, lifecycletest.Script{})
			if i > 0 {
				kept = append(kept, id)
			}
		}
		_, err := b.kill(lifecycle.Request{})
		require.NoError(b, err)
		b.requireStops(kept...)
	})
}

// A start that has started nothing is in the result, also if another one of the name, which was
// called later, has started its container.
func TestAStartOfNothingBesideAnother(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		b.spec.Spec.InitContainers = nil
		failed := make(chan error, 1)
		go func() {
			failed <- b.life.Start(b.ctx, "app", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "", lifecycle.ErrContainerNotFound
			})
		}()
		<-time.After(time.Second)
		b.runs("app", "c2", lifecycletest.Script{})
		result, err := b.life.Kill(b.ctx, lifecycle.Request{})
		require.NoError(b, err)
		require.ErrorIs(b, <-failed, lifecycle.ErrTerminating)
		require.Len(b, result.Containers, 2)
	})
}
