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

// addPostStart adds a main container "app" with a postStart hook to the pod's spec, and starts it.
func (b *testBed) addPostStart(hook *v1.LifecycleHandler, script lifecycletest.Script) {
	b.addMain("app", nil, script)
	b.pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: hook}
}

// A container with a postStart sleep of 20 s exits after 1 s, which ends the hook's context. The agent's hook runner then
// returns an error. The hook counts as ended, not as failed: PostStart returns no error after 1 s, and records no event.
func TestPostStartSleepEndsWhenItsContainerExits(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addPostStart(sleepHandler(20), lifecycletest.Script{ExitAfter: time.Second})
		require.NoError(b, b.PostStart(b.Context(), b.pod, containerNamed("app")))
		require.Equal(b, time.Second, b.elapsed())
		require.Empty(b, b.events.All())
	}, withHooks(func(ctx context.Context) error { <-ctx.Done(); return errors.New("exit status 143") }))
}
