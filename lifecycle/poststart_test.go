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

// addPostStart adds and starts a main container with a postStart hook.
func (b *testBed) addPostStart(hook *v1.LifecycleHandler, script lifecycletest.Script) {
	b.addMain("app", nil, script)
	b.pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: hook}
}

// A postStart sleep ends when its container exits. It has not failed, so that PostStart returns no error, whatever the
// agent's runner returns.
func TestPostStartSleepEndsWhenItsContainerExits(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addPostStart(sleepHandler(20), lifecycletest.Script{ExitAfter: time.Second})
		require.NoError(b, b.PostStart(b.Context(), b.pod, containerNamed("app")))
		require.Equal(b, time.Second, b.elapsed())
		require.Empty(b, b.events.All())
	}, withHooks(func(ctx context.Context) error { <-ctx.Done(); return errors.New("exit status 143") }))
}
