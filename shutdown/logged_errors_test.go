//go:build go1.25

package shutdown_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// loggedErrors runs a shutdown and returns how many errors the manager has logged.
func loggedErrors(t *testing.T, change func(n *node)) (count int64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, list(shutdowntest.Pod("web", 0, 5)))
		change(n)
		m, err := shutdown.NewManager(n.opts)
		require.NoError(t, err)
		var log errorCount
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), log.logger()))
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		<-m.Ready()
		n.advance(time.Second) // until the manager has published that the node does not shut down
		n.announce()
		n.advance(time.Minute)
		stop()
		require.NoError(t, <-ended)
		count = log.errors.Load()
	})
	return count
}

// A shutdown without failures logs no error. A failure is logged once, as an error.
func TestErrorsThatAreLogged(t *testing.T) {
	require.Zero(t, loggedErrors(t, func(*node) {}))
	require.EqualValues(t, 1, loggedErrors(t, func(n *node) {
		n.killer.Default = shutdowntest.Behaviour{Err: shutdown.ErrNoRetry}
	}), "the killer gives up")
	require.EqualValues(t, 1, loggedErrors(t, func(n *node) { n.opts.Reporter = &flakyPublisher{fails: 3} }), "publishing fails three times")
}
