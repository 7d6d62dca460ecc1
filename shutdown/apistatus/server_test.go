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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

func reporterOf(t testing.TB, client kubernetes.Interface, attempt time.Duration) *apistatus.Reporter {
	t.Helper()
	r, err := apistatus.New(apistatus.Options{Client: client, NodeName: nodeName, AttemptTimeout: attempt})
	require.NoError(t, err)
	return r
}

func TestManyPodsInLittleTime(t *testing.T) {
	server, _, pods := serveCrowd(t, 500)
	const patience = 30 * time.Second // no request is made twice because the machine is busy
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := time.Now()
	require.NoError(t, server.reporter(patience).FlushPods(ctx, pods))
	t.Logf("%d statuses took %v", len(pods), time.Since(began))
	require.Equal(t, 500, server.terminated())
	require.Len(t, server.Requests(), 1000)
}

// With client-go's default of five requests in a second 500 pods take more than
// three minutes; a third of a second of that tells the rest.
func TestManyPodsOnTheDefaultBudget(t *testing.T) {
	server, _, pods := serveCrowd(t, 500)
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
	for name, fault := range map[string]apiserverproxy.Fault{
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
			server, _, pods := serveCrowd(t, 20)
			server.register(nodeOf(ready))
			for _, pod := range pods[:5] {
				pod.DeletionTimestamp = &before
			}
			server.Script(apiserverproxy.Rules(apiserverproxy.Rule{Times: 1, Fault: fault}))
			r := server.reporter(patience)
			require.NoError(t, r.PublishNode(t.Context(), reboot))
			require.NoError(t, r.MarkReady(t.Context(), pods[10:], false))
			require.NoError(t, r.FlushPods(t.Context(), pods))
			require.Len(t, server.pods(), 15)
			require.Equal(t, 15, server.terminated())
			require.Equal(t, []said{notReady, rebooting}, saidBy(server.node().Status.Conditions))
		})
	}
}

func TestAServerThatAsksForPatience(t *testing.T) {
	server, r, pods := serveCrowd(t, 1)
	server.Script(apiserverproxy.Always(apiserverproxy.Fault{Status: http.StatusTooManyRequests, RetryAfter: time.Minute}))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	require.Equal(t, []string{"default/web-000"}, names(t, r.FlushPods(ctx, pods)))
	require.Less(t, time.Since(start), 5*time.Second, "it waits no longer than it is waited for")
}

func TestADeadServer(t *testing.T) {
	_, pods := crowd(500)
	hangs := func(proxy *apiserverproxy.Proxy) {
		proxy.Script(apiserverproxy.Always(apiserverproxy.Fault{Hang: true}))
	}
	for name, kill := range map[string]func(*apiserverproxy.Proxy){"refuses": (*apiserverproxy.Proxy).Die, "hangs": hangs} {
		t.Run(name, func(t *testing.T) {
			server, r := serve(t)
			kill(server.Proxy)
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
	server, r, pods := serveCrowd(t, 100)
	var dies sync.Once
	dead := make(chan struct{})
	server.Script(func(r apiserverproxy.Request) apiserverproxy.Fault {
		if strings.HasSuffix(r.Path, "web-050/status") {
			dies.Do(func() {
				server.Die()
				close(dead)
			})
		}
		return apiserverproxy.Fault{}
	})
	revived := make(chan error, 1)
	go func() {
		<-dead
		<-time.After(100 * time.Millisecond)
		revived <- server.Revive()
	}()
	require.NoError(t, r.FlushPods(t.Context(), pods))
	require.NoError(t, <-revived)
	require.Equal(t, 100, server.terminated())
}

// on calls a function once, before the first request of a method reaches the server.
func on(server *realServer, method string, call func()) {
	var happens sync.Once
	server.Script(func(r apiserverproxy.Request) apiserverproxy.Fault {
		if r.Method == method {
			happens.Do(call)
		}
		return apiserverproxy.Fault{}
	})
}

func TestAnotherWriterIsNotOverruled(t *testing.T) {
	t.Run("the pod succeeds", func(t *testing.T) {
		web := running("web")
		server, r := serve(t, web)
		done := web.DeepCopy()
		done.Status.Phase = v1.PodSucceeded
		on(server, http.MethodPatch, func() { server.setStatus(done) })
		require.NoError(t, r.FlushPods(t.Context(), []*v1.Pod{ended(web)}))
		got := server.pod("web")
		require.Equal(t, v1.PodSucceeded, got.Status.Phase)
		require.Empty(t, got.Status.Reason)
	})
	for name, method := range map[string]string{
		"the pod is another": http.MethodPatch, "the pod is another when it is deleted": http.MethodDelete,
	} {
		t.Run(name, func(t *testing.T) {
			web := running("web")
			server, r := serve(t, web)
			on(server, method, func() { server.recreate(running("web")) })
			pod := ended(web)
			pod.DeletionTimestamp = &before
			require.NoError(t, r.FlushPods(t.Context(), []*v1.Pod{pod}))
			got := server.pod("web")
			require.Equal(t, v1.PodRunning, got.Status.Phase)
			require.NotEqual(t, web.UID, got.UID)
			require.Nil(t, got.DeletionTimestamp)
		})
	}
	t.Run("the pod ends while it is put back", func(t *testing.T) {
		web := running("web")
		server, r := serve(t, web)
		require.NoError(t, r.MarkReady(t.Context(), []*v1.Pod{web}, false))
		on(server, http.MethodPatch, func() { server.setStatus(ended(web)) })
		require.NoError(t, r.MarkReady(t.Context(), []*v1.Pod{web}, true))
		require.Equal(t, v1.PodFailed, server.pod("web").Status.Phase)
	})
	t.Run("the node says why it is not ready", func(t *testing.T) {
		broken := said{v1.NodeReady, v1.ConditionFalse, "KubeletNotReady", "container runtime is down"}
		server, r := serve(t, nodeOf(notReady, rebooting))
		on(server, http.MethodPatch, func() { server.setNodeStatus(nodeOf(broken, rebooting)) })
		require.NoError(t, r.PublishNode(t.Context(), shutdown.NodeState{}))
		require.Equal(t, []said{broken, noShutdown}, saidBy(server.node().Status.Conditions))
	})
}

func TestRequests(t *testing.T) {
	web := running("web")
	server, r := serve(t, web, nodeOf(ready))
	require.NoError(t, r.PublishNode(t.Context(), reboot))
	require.NoError(t, r.FlushPods(t.Context(), []*v1.Pod{ended(web)}))
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
	server, r, pods := serveCrowd(t, 20)
	server.Script(apiserverproxy.Rules(
		apiserverproxy.Rule{Verb: "patch", Name: "web-003", Fault: apiserverproxy.Fault{Status: http.StatusForbidden}},
	))
	err := r.FlushPods(t.Context(), pods)
	require.Equal(t, []string{"default/web-003"}, names(t, err))
	require.Equal(t, 19, server.terminated())
	ok := errors.As(err, new(*shutdown.UnflushedError))
	require.True(t, ok)
}
