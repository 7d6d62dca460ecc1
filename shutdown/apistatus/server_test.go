package apistatus_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
	"github.com/kubegrace/kubegrace/shutdown/apistatus/apistatustest"
)

// serve starts an API server over TCP and makes a reporter of it.
func serve(t testing.TB, objects ...runtime.Object) (*apistatustest.Server, *apistatus.Reporter) {
	t.Helper()
	server, err := apistatustest.Start(objects...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	client, err := apistatus.NewClient(&rest.Config{Host: server.URL()})
	require.NoError(t, err)
	return server, reporterOf(t, client, 0)
}

func reporterOf(t testing.TB, client kubernetes.Interface, attempt time.Duration) *apistatus.Reporter {
	t.Helper()
	r, err := apistatus.New(apistatus.Options{Client: client, NodeName: nodeName, AttemptTimeout: attempt})
	require.NoError(t, err)
	return r
}

// terminated counts the pods of the server that have their final status.
func terminated(server *apistatustest.Server) int {
	n := 0
	for _, pod := range server.Pods() {
		if pod.Status.Phase == v1.PodFailed && pod.Status.Reason == shutdown.TerminatedReason {
			n++
		}
	}
	return n
}

// once gives a fault to the first request of each method and path.
func once(fault apistatustest.Fault) func(*http.Request) apistatustest.Fault {
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(r *http.Request) apistatustest.Fault {
		mu.Lock()
		defer mu.Unlock()
		key := r.Method + r.URL.Path
		if seen[key] {
			return apistatustest.Fault{}
		}
		seen[key] = true
		return fault
	}
}

func TestManyPodsInLittleTime(t *testing.T) {
	servers, pods := crowd(500)
	server, r := serve(t, servers...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(slowdown)*2*time.Second)
	defer cancel()
	require.NoError(t, r.FlushPods(ctx, pods))
	require.Equal(t, 500, terminated(server))
	require.Len(t, server.Requests(), 1000)
}

// With client-go's default of five requests in a second 500 pods take more than
// three minutes; a third of a second of that tells the rest.
func TestManyPodsOnTheDefaultBudget(t *testing.T) {
	servers, pods := crowd(500)
	server, _ := serve(t, servers...)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL()})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err = reporterOf(t, client, 0).FlushPods(ctx, pods)
	require.Greater(t, len(names(t, err)), 490)
	require.LessOrEqual(t, len(server.Requests()), rest.DefaultBurst+2)
}

func TestFaultsOfAServer(t *testing.T) {
	const patience = 50 * time.Millisecond
	for name, fault := range map[string]apistatustest.Fault{
		"conflict":     {Status: http.StatusConflict},
		"overloaded":   {Status: http.StatusTooManyRequests},
		"broken":       {Status: http.StatusInternalServerError},
		"unavailable":  {Status: http.StatusServiceUnavailable},
		"dropped":      {Drop: true},
		"lost answers": {Lost: true},
		"hangs":        {Hang: true},
		"slow":         {Delay: 3 * patience / 2},
	} {
		t.Run(name, func(t *testing.T) {
			servers, pods := crowd(20)
			for _, pod := range pods[:5] {
				pod.DeletionTimestamp = &before
			}
			server, _ := serve(t, append(servers, nodeOf(ready))...)
			server.Script(once(fault))
			client, err := apistatus.NewClient(&rest.Config{Host: server.URL()})
			require.NoError(t, err)
			r := reporterOf(t, client, patience)
			require.NoError(t, r.PublishNode(t.Context(), reboot))
			require.NoError(t, r.MarkReady(t.Context(), pods[10:], false))
			require.NoError(t, r.FlushPods(t.Context(), pods))
			require.Len(t, server.Pods(), 15)
			require.Equal(t, 15, terminated(server))
			node, _ := server.Node(nodeName)
			require.Equal(t, []said{notReady, rebooting}, saidBy(node.Status.Conditions))
		})
	}
}

func TestAServerThatAsksForPatience(t *testing.T) {
	servers, pods := crowd(1)
	server, r := serve(t, servers...)
	server.Script(func(*http.Request) apistatustest.Fault {
		return apistatustest.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Minute}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	require.Equal(t, []string{"default/web-000"}, names(t, r.FlushPods(ctx, pods)))
	require.Less(t, time.Since(start), 5*time.Second, "it waits no longer than it is waited for")
}

func TestADeadServer(t *testing.T) {
	servers, pods := crowd(500)
	hangs := func(server *apistatustest.Server) {
		server.Script(func(*http.Request) apistatustest.Fault { return apistatustest.Fault{Hang: true} })
	}
	for name, kill := range map[string]func(*apistatustest.Server){"refuses": (*apistatustest.Server).Die, "hangs": hangs} {
		t.Run(name, func(t *testing.T) {
			server, r := serve(t, servers...)
			kill(server)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			start := time.Now()
			err := r.FlushPods(ctx, pods)
			require.Less(t, time.Since(start), 5*time.Second)
			require.Len(t, names(t, err), 500)
			require.Less(t, len(err.Error()), 1000, "%v", err)
			require.ErrorIs(t, r.PublishNode(ctx, reboot), context.DeadlineExceeded)
		})
	}
}

func TestAServerThatComesBack(t *testing.T) {
	servers, pods := crowd(100)
	server, r := serve(t, servers...)
	var dies sync.Once
	dead := make(chan struct{})
	server.Script(func(r *http.Request) apistatustest.Fault {
		if strings.HasSuffix(r.URL.Path, "web-050/status") {
			dies.Do(func() {
				server.Die()
				close(dead)
			})
		}
		return apistatustest.Fault{}
	})
	revived := make(chan error, 1)
	go func() {
		<-dead
		<-time.After(100 * time.Millisecond)
		revived <- server.Revive()
	}()
	require.NoError(t, r.FlushPods(t.Context(), pods))
	require.NoError(t, <-revived)
	require.Equal(t, 100, terminated(server))
}

// between calls a function once, between the read of a pod and its patch.
func between(server *apistatustest.Server, call func()) {
	var happens sync.Once
	server.Script(func(r *http.Request) apistatustest.Fault {
		if r.Method == http.MethodPatch {
			happens.Do(call)
		}
		return apistatustest.Fault{}
	})
}

func TestAnotherWriterIsNotOverruled(t *testing.T) {
	t.Run("the pod succeeds", func(t *testing.T) {
		server, r := serve(t, running("web"))
		done := running("web")
		done.Status.Phase = v1.PodSucceeded
		between(server, func() { require.NoError(t, server.Put(done)) })
		require.NoError(t, r.FlushPods(t.Context(), []*v1.Pod{ended(running("web"))}))
		got, _ := server.Pod("default", "web")
		require.Equal(t, v1.PodSucceeded, got.Status.Phase)
		require.Empty(t, got.Status.Reason)
	})
	t.Run("the pod is another", func(t *testing.T) {
		server, r := serve(t, running("web"))
		other := running("web")
		other.UID = "another"
		between(server, func() { require.NoError(t, server.Put(other)) })
		pod := ended(running("web"))
		pod.DeletionTimestamp = &before
		require.NoError(t, r.FlushPods(t.Context(), []*v1.Pod{pod}))
		got, _ := server.Pod("default", "web")
		require.Equal(t, v1.PodRunning, got.Status.Phase)
	})
	t.Run("the pod is another when it is deleted", func(t *testing.T) {
		server, r := serve(t, running("web"))
		other := running("web")
		other.UID = "another"
		var happens sync.Once
		server.Script(func(r *http.Request) apistatustest.Fault {
			if r.Method == http.MethodDelete {
				happens.Do(func() { require.NoError(t, server.Put(other)) })
			}
			return apistatustest.Fault{}
		})
		pod := ended(running("web"))
		pod.DeletionTimestamp = &before
		require.NoError(t, r.FlushPods(t.Context(), []*v1.Pod{pod}))
		_, there := server.Pod("default", "web")
		require.True(t, there)
	})
	t.Run("the pod ends while it is put back", func(t *testing.T) {
		server, r := serve(t, running("web"))
		require.NoError(t, r.MarkReady(t.Context(), []*v1.Pod{running("web")}, false))
		between(server, func() { require.NoError(t, server.Put(ended(running("web")))) })
		require.NoError(t, r.MarkReady(t.Context(), []*v1.Pod{running("web")}, true))
		got, _ := server.Pod("default", "web")
		require.Equal(t, v1.PodFailed, got.Status.Phase)
	})
	t.Run("the node says why it is not ready", func(t *testing.T) {
		broken := said{v1.NodeReady, v1.ConditionFalse, "KubeletNotReady", "container runtime is down"}
		server, r := serve(t, nodeOf(notReady, rebooting))
		between(server, func() { require.NoError(t, server.Put(nodeOf(broken, rebooting))) })
		require.NoError(t, r.PublishNode(t.Context(), shutdown.NodeState{}))
		node, _ := server.Node(nodeName)
		require.Equal(t, []said{broken, noShutdown}, saidBy(node.Status.Conditions))
	})
}

func TestRequests(t *testing.T) {
	server, r := serve(t, running("web"), nodeOf(ready))
	require.NoError(t, r.PublishNode(t.Context(), reboot))
	require.NoError(t, r.FlushPods(t.Context(), []*v1.Pod{ended(running("web"))}))
	var asked []string
	for _, request := range server.Requests() {
		asked = append(asked, strings.TrimSpace(request.Method+" "+request.Path+" "+request.ContentType))
	}
	const merge = " application/strategic-merge-patch+json"
	require.Equal(t, []string{
		"GET /api/v1/nodes/node-1", "PATCH /api/v1/nodes/node-1/status" + merge,
		"GET /api/v1/namespaces/default/pods/web", "PATCH /api/v1/namespaces/default/pods/web/status" + merge,
	}, asked)
}

func TestAPodThatIsRefused(t *testing.T) {
	servers, pods := crowd(20)
	server, r := serve(t, servers...)
	server.Script(func(r *http.Request) apistatustest.Fault {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "web-003") {
			return apistatustest.Fault{Status: http.StatusForbidden}
		}
		return apistatustest.Fault{}
	})
	err := r.FlushPods(t.Context(), pods)
	require.Equal(t, []string{"default/web-003"}, names(t, err))
	require.Equal(t, 19, terminated(server))
	ok := errors.As(err, new(*shutdown.UnflushedError))
	require.True(t, ok)
}
