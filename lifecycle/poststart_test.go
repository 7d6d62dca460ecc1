//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// addAppWithPostStart adds the main container app with a postStart hook to the pod's spec, and starts it with the ID app.
func (b *testBed) addAppWithPostStart(hook *v1.LifecycleHandler, script lifecycletest.Script) {
	b.addMain("app", script)
	b.pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: hook}
}

// A container with a postStart sleep of 20 s exits after 1 s, which ends the hook's context. The agent's hook runner then
// returns an error. The hook has ended, not failed: PostStart returns no error after 1 s, and records no event.
func TestPostStartSleepEndsWhenItsContainerExits(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addAppWithPostStart(sleepHandler(20), lifecycletest.Script{ExitAfter: time.Second})
		require.NoError(b, b.PostStart(b.Context(), b.pod, containerNamed("app")))
		require.Equal(b, time.Second, b.elapsed())
		require.Empty(b, b.events.All())
	}, withHookRunner(func(ctx context.Context) error { <-ctx.Done(); return errors.New("exit status 143") }))
}
