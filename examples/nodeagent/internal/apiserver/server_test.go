package apiserver_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/apiserver"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/clustertest"
	"github.com/kubegrace/kubegrace/internal/apiserverproxy"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

// startServer starts a real API server that has the node, and connects to it.
func startServer(t *testing.T) (*clustertest.Cluster, *apiserver.Client) {
	t.Helper()
	server := clustertest.Start(t, nodeName)
	client, err := apiserver.Connect(t.Context(), &rest.Config{Host: server.URL()}, nodeName, []*v1.Pod{theStaticPod(t)})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return server, client
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, 20*time.Second, 5*time.Millisecond)
}

// The shutdown marks the pod as not ready after KeepMirror has read the mirror and before
// it writes. The write of KeepMirror fails with a conflict.
func TestLateWriteDoesNotOverruleTheShutdown(t *testing.T) {
	server, client := startServer(t)
	p := runningPod()
	markedNotReady := make(chan struct{})
	server.Script(func(r apiserverproxy.Request) apiserverproxy.Fault {
		if r.Verb == "update" {
			p.ending.Store(true)
			mirror := server.Pod("default", "web-node-1")
			mirror.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: apistatus.ReasonTakenOut, Message: apistatus.MessageTakenOut}}
			server.UpdatePodStatus(mirror)
			server.Script(nil)
			close(markedNotReady)
		}
		return apiserverproxy.Fault{}
	})
	stop := keep(t, client, p)
	<-markedNotReady
	eventually(t, func() bool { return server.Requests()[len(server.Requests())-1].Status == http.StatusConflict })
	stop()
	after := server.Pod("default", "web-node-1")
	require.Equal(t, apistatus.ReasonTakenOut, condition(after, v1.PodReady).Reason)
}

func TestPublishError(t *testing.T) {
	server, client := startServer(t)
	require.NoError(t, client.PublishError())
	require.NoError(t, client.PublishNode(t.Context(), shutdown.NodeState{ShuttingDown: true}))
	require.NoError(t, client.PublishError())
	server.Script(apiserverproxy.Always(apiserverproxy.Fault{Hang: true}))
	hung, giveUp := context.WithCancel(t.Context())
	published := make(chan error)
	go func() {
		published <- client.PublishNode(hung, shutdown.NodeState{ShuttingDown: true, Kind: shutdown.KindReboot})
	}()
	eventually(t, func() bool { return client.PublishError() != nil })
	require.EqualError(t, client.PublishError(), "it has not answered")
	giveUp()
	require.Error(t, <-published)
	server.Script(apiserverproxy.Always(apiserverproxy.Fault{Status: http.StatusForbidden}))
	require.Error(t, client.PublishNode(t.Context(), shutdown.NodeState{ShuttingDown: true}))
	require.ErrorContains(t, client.PublishError(), "as the script wants")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, client.PublishNode(ctx, shutdown.NodeState{}))
	require.NoError(t, client.PublishError(), "there is no shutdown any more")
}

func TestEventsAreFoundByTheMirror(t *testing.T) {
	server, client := startServer(t)
	static := theStaticPod(t)
	container := &v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "default", Name: static.Name, UID: static.UID, FieldPath: "spec.containers{app}"}
	client.Event(static, v1.EventTypeWarning, "ExceededGracePeriod", "too long")
	client.Event(container, v1.EventTypeNormal, "Killing", "Stopping container app")
	client.Event(client.Node(), v1.EventTypeNormal, "Shutdown", "detected")
	eventually(t, func() bool { return len(server.Events()) == 3 })
	for _, event := range server.Events() {
		require.Equal(t, v1.EventSource{Component: "nodeagent", Host: nodeName}, event.Source)
		if event.InvolvedObject.Kind == "Node" {
			require.EqualValues(t, nodeName, event.InvolvedObject.UID)
			continue
		}
		require.EqualValues(t, static.Annotations["kubernetes.io/config.hash"], event.InvolvedObject.UID, event.Reason)
	}
	require.EqualValues(t, "static", container.UID, "the caller's reference is not changed")
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	const good = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],
users: [{name: u, user: {client-certificate: node.crt, client-key: node.key}}], clusters: [{name: k, cluster: {server: "https://10.0.0.1:6443"}}]}`
	certificate := write("node.crt", "of a node")
	write("node.key", "its key")
	config, err := apiserver.Load(write("good", good))
	require.NoError(t, err)
	require.Equal(t, "https://10.0.0.1:6443", config.Host)
	require.Equal(t, certificate, config.CertFile, "relative to the file")

	for name, file := range map[string]string{
		"missing": filepath.Join(dir, "nowhere"), "not YAML": write("broken", "kind: ["),
		"empty": write("empty", ""), "no context": write("context", "{apiVersion: v1, kind: Config, current-context: other}"),
	} {
		_, err := apiserver.Load(file)
		require.ErrorContains(t, err, file, name)
	}
}
