package apistatustest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/shutdown/apistatus/apistatustest"
)

func TestStartFillsInWhatTheAPIServerDoes(t *testing.T) {
	given := pod("web")
	given.UID = ""
	server := start(t, given, node("node-1"))
	require.Empty(t, given.ResourceVersion, "the caller's object is left alone")

	got := stored(t, server, "web")
	require.NotEmpty(t, got.UID)
	require.NotEmpty(t, got.ResourceVersion)
	require.False(t, got.CreationTimestamp.IsZero())
	require.EqualValues(t, 1, got.Generation)
	require.Equal(t, ptr.To(graceperiod.DefaultSeconds), got.Spec.TerminationGracePeriodSeconds)
	require.Equal(t, v1.PodRunning, got.Status.Phase)

	n, ok := server.Node("node-1")
	require.True(t, ok)
	require.NotEmpty(t, n.UID)
	_, ok = server.Node("node-2")
	require.False(t, ok)
	_, ok = server.Pod("default", "api")
	require.False(t, ok)
}

func TestWhatIsHandedOutIsACopy(t *testing.T) {
	server := start(t, pod("web"))
	stored(t, server, "web").Status.Phase = v1.PodFailed
	server.Pods()[0].Status.Phase = v1.PodFailed
	require.Equal(t, v1.PodRunning, stored(t, server, "web").Status.Phase)
}

func TestPutReplacesBehindTheClientsBack(t *testing.T) {
	server := start(t, pod("web"))
	before := stored(t, server, "web")

	again := pod("web")
	again.UID, again.Status.Phase = "", v1.PodSucceeded
	require.NoError(t, server.Put(again, pod("api")))
	after := stored(t, server, "web")
	require.Equal(t, before.UID, after.UID, "the same pod")
	require.NotEqual(t, before.ResourceVersion, after.ResourceVersion)
	require.Equal(t, v1.PodSucceeded, after.Status.Phase)

	again.UID = "another"
	require.NoError(t, server.Put(again))
	require.EqualValues(t, "another", stored(t, server, "web").UID, "recreated")
	require.Equal(t, "api", server.Pods()[0].Name, "in the order of their names")
	require.Len(t, server.Pods(), 2)
}

func TestRemove(t *testing.T) {
	held := pod("web")
	held.Finalizers = []string{"example.com/hold"}
	server := start(t, held)
	server.Remove("default", "web")
	server.Remove("default", "web")
	require.Empty(t, server.Pods())
}

func TestPutRefuses(t *testing.T) {
	server := start(t)
	for name, test := range map[string]struct {
		object runtime.Object
		want   string
	}{
		"kind":         {&v1.Secret{}, "failed to store an object: a *v1.Secret is not served"},
		"nil":          {nil, "a <nil> is not served"},
		"typed nil":    {(*v1.Pod)(nil), "failed to store a Pod: metadata.name is missing"},
		"no name":      {&v1.Node{}, "failed to store a Node: metadata.name is missing"},
		"no namespace": {&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, `the Pod "web": metadata.namespace is missing`},
		"other kind":   {&v1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}}, "cannot be handled as a Pod"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, server.Put(pod("first"), test.object), test.want)
			require.Empty(t, server.Pods(), "nothing is stored")
			_, err := apistatustest.Start(test.object)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestEventsComeInTheOrderOfTheirLastChanges(t *testing.T) {
	server := start(t)
	events := clientFor(t, server).Events("default")
	for _, name := range []string{"b", "a"} {
		_, err := events.Create(t.Context(), &v1.Event{ObjectMeta: metav1.ObjectMeta{Name: name}, Reason: "Shutdown"}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.Len(t, server.Events(), 2)
	require.Equal(t, "b", server.Events()[0].Name)

	_, err := events.Patch(t.Context(), "b", "application/strategic-merge-patch+json", []byte(`{"count":2}`), metav1.PatchOptions{})
	require.NoError(t, err, "as a recorder counts")
	require.Equal(t, "b", server.Events()[1].Name)
	require.EqualValues(t, 2, server.Events()[1].Count)
}
