package main

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// okHandler answers each request at once with 200.
func okHandler() http.Handler { return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}) }

// newClient returns a client whose idle connections are closed when the test ends.
func newClient(t *testing.T, n network) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: n.dial}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// stuckNode returns a node with the container "pod/web", which has accepted a request and never answers it.
// The channel gets the client's error when the request ends.
func stuckNode(t *testing.T) (*node, <-chan error) {
	t.Helper()
	n := newNode(pipeNetwork(1))
	accepted := make(chan struct{})
	address, err := n.start(t.Context(), containerID("pod", webContainer), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(accepted)
		<-r.Context().Done()
	}))
	require.NoError(t, err)
	client, lost := newClient(t, n.network), make(chan error, 1)
	go func() { lost <- post(t.Context(), client, "http://"+address) }()
	<-accepted
	return n, lost
}

// A container with a request that never ends does not end on SIGTERM. It is killed after exactly 7 s, its
// client gets an error, and the container no longer runs.
func TestAContainerIsKilledWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, lost := stuckNode(t)
		pod := scenario{}.pod("pod")
		running, err := n.Running(t.Context(), pod)
		require.NoError(t, err)
		require.Equal(t, []lifecycle.Container{{Name: "web", ID: "pod/web"}}, running)
		start := time.Now()
		require.NoError(t, n.StopContainer(t.Context(), "pod/web", 7))
		require.Equal(t, 7*time.Second, time.Since(start))
		require.Error(t, <-lost)
		running, err = n.Running(t.Context(), pod)
		require.NoError(t, err)
		require.Empty(t, running)
		require.ErrorIs(t, n.StopContainer(t.Context(), "pod/web", 7), lifecycle.ErrContainerNotFound)
		require.NoError(t, n.close())
	})
}
