//go:build go1.25

package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// addStuckContainer adds a container to the pod, kills it alone, with its hook, and leaves it stuck.
func (b *bed) addStuckContainer(name string) {
	b.Helper()
	b.addMain(name, exec(), lifecycletest.Script{FailStops: -1})
	result, err := b.KillContainer(b.silentContext(), b.pod, lifecycle.Container{Name: name, ID: name}, lifecycle.ContainerRequest{})
	require.ErrorIs(b, err, lifecycletest.ErrScripted)
	require.Equal(b, lifecycle.RuntimeStuck, result.Outcome)
}

// A container that is stuck may run beside one that was started later with the same name. The
// pod has not ended before both have.
func TestStuckContainerIsKeptAfterAnotherWasStarted(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.addStuckContainer("app")
		require.NoError(b, b.Start(b.Context(), b.pod, "app", func(context.Context) (string, error) {
			b.rt.Start("app-2", lifecycletest.Script{})
			return "app-2", nil
		}))
		b.pod.Status.ContainerStatuses[0].ContainerID = "fake://app-2"

		result, err := b.KillPod(b.silentContext(), b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		require.Equal(b, lifecycle.RuntimeStuck, result.Outcome())
		_, exited := b.rt.ExitCode("app-2")
		require.True(b, exited)
		require.Len(b, b.rt.Execs(), 2, "each has its hook once")
	})
}

// The other container may be known only from a PostStart or a KillContainer.
func TestStuckContainerIsKeptAfterTheHookOfAnother(t *testing.T) {
	for name, touch := range map[string]func(*bed, lifecycle.Container) error{
		"a postStart hook": func(b *bed, c lifecycle.Container) error {
			b.pod.Spec.Containers[0].Lifecycle.PostStart = exec()
			return b.PostStart(b.Context(), b.pod, c)
		},
		"a kill": func(b *bed, c lifecycle.Container) error {
			_, err := b.KillContainer(b.Context(), b.pod, c, lifecycle.ContainerRequest{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 10, func(b *bed) {
				b.addStuckContainer("app")
				b.rt.Start("app-2", lifecycletest.Script{})
				named := lifecycle.Container{Name: "app", ID: "app-2"}
				require.NoError(b, touch(b, named))
				result, err := b.KillPod(b.silentContext(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{named}})
				require.ErrorIs(b, err, lifecycletest.ErrScripted)
				require.Equal(b, lifecycle.RuntimeStuck, result.Outcome())
			})
		})
	}
}

// A container that reuses the ID of one that was stuck has its full grace period. The old
// container is gone.
func TestReusedIDOfAStuckContainer(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.addStuckContainer("app")
		<-time.After(10 * time.Second)
		asked := len(b.rt.Stops())
		b.rt.Exit("app")
		b.rt.Start("app", lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		b.pod.Status.ContainerStatuses[0].State.Running.StartedAt.Time = time.Now()

		result := b.kill()
		require.Equal(b, lifecycle.Graceful, result.Outcome())
		require.Len(b, b.rt.Stops(), asked+1)
		require.EqualValues(b, 10, b.rt.Stops()[asked].TimeoutSeconds)
	})
}

// A container that is gone when it is to be forced was not forced.
func TestAContainerThatIsGoneWhenItIsForced(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{})
		b.stuckUntil(15 * time.Second)
		time.AfterFunc(14*time.Second, func() { b.rt.Remove("app") })
		result, err := b.KillPod(b.silentContext(), b.pod, lifecycle.Request{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.NotFound, result.Outcome())
	})
}

// A wait that ends early names the containers that have not ended, and none of which only a hook
// goes on.
func TestAWaitNamesWhatHasNotEnded(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.addMain("app", exec(), lifecycletest.Script{})
		b.addMain("web", nil, lifecycletest.Script{FailStops: -1})
		ctx, cancel := context.WithTimeout(b.silentContext(), 15*time.Second)
		defer cancel()
		_, err := b.KillPod(ctx, b.pod, lifecycle.Request{})
		var running *lifecycle.StillRunningError
		require.ErrorAs(b, err, &running)
		require.Equal(b, []string{"ns/pod/web"}, running.Containers)
	}, withHooks(func(context.Context) error { <-time.After(time.Minute); return nil }))
}
