//go:build go1.25

package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A handle of a life that is over does nothing any more.
func TestAHandleOfAForgottenLife(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		b.runs("app", "a", lifecycletest.Script{})
		require.Equal(b, b.life, b.tr.Pod(b.spec), "handles of one life are equal")
		require.True(b, b.life == b.tr.Pod(b.spec) || *b.life == *b.tr.Pod(b.spec))
		b.life.Forget()
		b.life.Forget()
		require.ErrorIs(b, b.start("proxy", "p", lifecycletest.Script{}), lifecycle.ErrForgotten)
		_, exited := b.rt.ExitCode("p")
		require.False(b, exited)
		require.ErrorIs(b, b.life.PostStart(b.ctx, lifecycle.Container{Name: "app", ID: "a"}), lifecycle.ErrForgotten)
		_, err := b.life.KillContainer(b.ctx, lifecycle.Container{Name: "app", ID: "a"}, lifecycle.ContainerRequest{})
		require.ErrorIs(b, err, lifecycle.ErrForgotten)
		_, err = b.kill(lifecycle.Request{})
		require.ErrorIs(b, err, lifecycle.ErrForgotten)
		_, err = b.life.Terminate(b.ctx, lifecycle.Request{}).Wait(b.ctx)
		require.ErrorIs(b, err, lifecycle.ErrForgotten)
		_, ok := b.life.Termination()
		require.False(b, ok)
		b.requireStops()
		b.life = b.tr.Pod(b.spec)
		b.runs("app", "a2", lifecycletest.Script{})
	})
}

// What was under way when the pod was forgotten belongs to its next life.
func TestWhatIsUnderWayBelongsToTheNextLife(t *testing.T) {
	for name, begin := range map[string]func(*lifeBed){
		"a start": func(b *lifeBed) {
			go func() { _ = b.start("app", "a", lifecycletest.Script{StartTakes: 5 * time.Second, StartDeaf: true}) }()
		},
		"a stop": func(b *lifeBed) {
			b.runs("app", "a", lifecycletest.Script{ExitAfterTerm: 20 * time.Second})
			b.life.Terminate(b.ctx, lifecycle.Request{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inLife(t, func(b *lifeBed) {
				b.spec.Spec.InitContainers = nil
				begin(b)
				<-time.After(time.Second)
				b.tr.ForgetPod(b.spec.UID)
				_, err := b.tr.Pod(b.spec).Kill(b.ctx, lifecycle.Request{})
				require.NoError(b, err)
				b.requireExited("a")
				b.requireStops("a")
				b.requireHooks("a")
			})
		})
	}
}

// A pod that was forgotten while its containers were being started starts no more of them: the
// agent's worker holds the old handle.
func TestAWorkerOfAForgottenPodStartsNothing(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		b.runs("app", "a", lifecycletest.Script{})
		_, err := b.kill(lifecycle.Request{})
		require.NoError(b, err)
		b.tr.ForgetPod(b.spec.UID)
		started := false
		require.ErrorIs(b, b.life.Start(b.ctx, "proxy", func(context.Context) (string, error) {
			started = true
			return "p", nil
		}), lifecycle.ErrForgotten)
		require.False(b, started)
	})
}

// A life that began without a UID takes the first one; another UID is another life.
func TestTheUIDOfALife(t *testing.T) {
	for uid, stops := range map[types.UID][]string{"": {"a"}, "one": {"a"}, "other": nil} {
		inLife(t, func(b *lifeBed) {
			b.spec = withUID(b.spec, "")
			b.spec.Name, b.spec.Spec.InitContainers = "nameless", nil
			b.life = b.tr.Pod(b.spec)
			b.runs("app", "a", lifecycletest.Script{})
			if uid == "other" {
				require.ErrorIs(b, b.tr.Pod(withUID(b.spec, "first")).Start(b.ctx, "app", func(context.Context) (string, error) {
					return "", lifecycle.ErrContainerNotFound
				}), lifecycle.ErrContainerNotFound)
			}
			r, err := b.tr.KillPod(b.ctx, withUID(b.spec, uid), lifecycle.Request{})
			require.Equal(b, stops == nil, err != nil, "%q %v %+v", uid, err, r)
			b.requireStops(stops...)
		})
	}
}

// A handle is only a name: one that was made before does not hide a life that began without a UID,
// and is a name for it too.
func TestAHandleHidesNoLife(t *testing.T) {
	for name, kill := range map[string]func(*lifeBed) error{
		"KillPod": func(b *lifeBed) error {
			_, err := b.tr.KillPod(b.ctx, b.spec, lifecycle.Request{})
			return err
		},
		"the handle": func(b *lifeBed) error {
			_, err := b.kill(lifecycle.Request{})
			return err
		},
		"another handle": func(b *lifeBed) error {
			_, err := b.tr.Pod(b.spec).Kill(b.ctx, lifecycle.Request{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inLife(t, func(b *lifeBed) { // b.life is a handle with a UID
				b.spec.Spec.InitContainers = nil
				require.NoError(b, b.tr.Pod(withUID(b.spec, "")).Start(b.ctx, "app", func(ctx context.Context) (string, error) {
					return b.rt.StartContainer(ctx, "a", lifecycletest.Script{})
				}))
				require.NoError(b, kill(b))
				b.requireStops("a")
				_, ok := b.life.Termination()
				require.True(b, ok)
				b.life.Forget()
				require.NoError(b, b.tr.Pod(b.spec).Start(b.ctx, "app", func(context.Context) (string, error) { return "a2", nil }))
			})
		})
	}
}

// An empty list means the same as none: the containers of the status. Only a complete one says
// that nothing else runs.
func TestAnEmptyListIsNotComplete(t *testing.T) {
	for name, test := range map[string]struct {
		request lifecycle.Request
		stops   []string
	}{
		"none":           {lifecycle.Request{}, []string{"a"}},
		"empty":          {lifecycle.Request{Containers: []lifecycle.Container{}}, []string{"a"}},
		"complete":       {lifecycle.Request{Complete: true}, nil},
		"complete empty": {lifecycle.Request{Complete: true, Containers: []lifecycle.Container{}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inLife(t, func(b *lifeBed) {
				b.spec.Spec.InitContainers = nil
				b.rt.Start("a", lifecycletest.Script{})
				r, err := b.tr.KillPod(b.ctx, b.showing("a", runningSince(time.Now())), test.request)
				require.NoError(b, err)
				require.Equal(b, lifecycle.Graceful, r.Outcome())
				b.requireStops(test.stops...)
			})
			inLife(t, func(b *lifeBed) { // what Start has started is known anyhow
				b.spec.Spec.InitContainers = nil
				b.runs("app", "a", lifecycletest.Script{})
				outcome, err := b.kill(test.request)
				require.NoError(b, err)
				require.Equal(b, lifecycle.Graceful, outcome)
				b.requireStops("a")
			})
		})
	}
}

// A handle that was made before the UID of a pod was known is that of its life.
func TestAHandleThatIsOlderThanTheUID(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.pod.UID = ""
		one := b.Pod(b.pod)
		require.True(b, one == b.Pod(withUID(b.pod, "uid")))
	})
}
