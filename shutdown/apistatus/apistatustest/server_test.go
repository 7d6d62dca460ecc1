package apistatustest_test

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown/apistatus/apistatustest"
)

func TestRequestsAreNoted(t *testing.T) {
	server := start(t, pod("web"))
	_, err := patch(t, server, strategic, failed, "status")
	require.NoError(t, err)
	_, err = clientFor(t, server).Nodes().Get(t.Context(), "node-1", metav1.GetOptions{})
	require.Error(t, err)

	asked := server.Requests()
	require.Len(t, asked, 2)
	first := asked[0]
	require.False(t, first.At.IsZero())
	require.False(t, first.Answered.Before(first.At))
	first.At, first.Answered = asked[1].At, asked[1].At
	require.Equal(t, apistatustest.Request{
		Method: http.MethodPatch, Path: "/api/v1/namespaces/default/pods/web/status",
		ContentType: string(strategic), UserAgent: "agent/1", Body: []byte(failed),
		Status: http.StatusOK, At: asked[1].At, Answered: asked[1].At,
	}, first)
	require.Equal(t, http.StatusNotFound, asked[1].Status)
}

func TestDieAndRevive(t *testing.T) {
	server := start(t, pod("web"))
	client, address := clientFor(t, server).Pods("default"), server.URL()
	_, err := client.Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)

	server.Die()
	server.Die()
	_, err = client.Get(t.Context(), "web", metav1.GetOptions{})
	require.ErrorIs(t, err, syscall.ECONNREFUSED)

	require.NoError(t, server.Revive())
	require.NoError(t, server.Revive(), "it lives")
	require.Equal(t, address, server.URL())
	_, err = client.Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err, "with what it had stored")
}

func TestReviveWhenTheAddressIsTaken(t *testing.T) {
	server := start(t)
	server.Die()
	address, err := url.Parse(server.URL())
	require.NoError(t, err)
	other, err := net.Listen("tcp", address.Host)
	require.NoError(t, err)
	require.ErrorIs(t, server.Revive(), syscall.EADDRINUSE)
	require.NoError(t, other.Close())
	require.NoError(t, server.Revive())
}

// TestAScriptMayKillTheServer leaves the request undone that it is asked about.
func TestAScriptMayKillTheServer(t *testing.T) {
	server := start(t, pod("web"))
	server.Script(func(*http.Request) apistatustest.Fault {
		server.Die()
		return apistatustest.Fault{}
	})
	_, err := patch(t, server, strategic, failed, "status")
	require.Error(t, err)
	require.NoError(t, server.Close())
	require.Equal(t, v1.PodRunning, stored(t, server, "web").Status.Phase)
	require.Zero(t, server.Requests()[0].Status)
}

func TestCloseEndsWhatHangs(t *testing.T) {
	server, err := apistatustest.Start(pod("web"))
	require.NoError(t, err)
	const clients = 20
	arrived := make(chan struct{}, clients)
	server.Script(func(*http.Request) apistatustest.Fault {
		arrived <- struct{}{}
		return apistatustest.Fault{Hang: true}
	})
	var asking sync.WaitGroup
	for range clients {
		pods := clientFor(t, server).Pods("default")
		asking.Go(func() {
			if _, err := pods.Patch(t.Context(), "web", strategic, []byte(failed), metav1.PatchOptions{}); err == nil {
				t.Error("an answer of a server that hangs")
			}
		})
	}
	for range clients {
		<-arrived
	}
	require.NoError(t, server.Close())
	asking.Wait()
	require.NoError(t, server.Close(), "a second time")
	require.ErrorIs(t, server.Revive(), http.ErrServerClosed)
	require.Len(t, server.Requests(), clients)
}

// TestCloseWaits closes a server in the middle of a request that does not end with
// its connection.
func TestCloseWaits(t *testing.T) {
	server, err := apistatustest.Start(pod("web"))
	require.NoError(t, err)
	arrived, ended := make(chan struct{}), false
	server.Script(func(r *http.Request) apistatustest.Fault {
		close(arrived)
		<-r.Context().Done()
		<-time.After(10 * time.Millisecond)
		ended = true
		return apistatustest.Fault{}
	})
	pods := clientFor(t, server).Pods("default")
	asked := make(chan error, 1)
	go func() {
		_, err := pods.Patch(t.Context(), "web", strategic, []byte(failed), metav1.PatchOptions{})
		asked <- err
	}()
	<-arrived
	require.NoError(t, server.Close())
	require.True(t, ended)
	require.Error(t, <-asked)
}

// TestManyClients has them all patch at once what each reads first.
func TestManyClients(t *testing.T) {
	server := start(t, pod("web"))
	pods := clientFor(t, server).Pods("default")
	var asking sync.WaitGroup
	for i := range 50 {
		asking.Go(func() {
			label := fmt.Sprintf(`{"metadata":{"labels":{"l%d":"x"}}}`, i)
			if _, err := pods.Patch(t.Context(), "web", merge, []byte(label), metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
			server.Pods()
			server.Requests()
		})
	}
	asking.Wait()
	require.Len(t, stored(t, server, "web").Labels, 50, "none is overwritten by another")
}
