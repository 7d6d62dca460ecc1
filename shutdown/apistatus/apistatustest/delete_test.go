package apistatustest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func TestDeleteWithGraceIsLeftToTheNode(t *testing.T) {
	server := start(t, pod("web"))
	pods := clientFor(t, server).Pods("default")
	before := time.Now().Truncate(time.Second)
	require.NoError(t, pods.Delete(t.Context(), "web", metav1.DeleteOptions{}))

	got := stored(t, server, "web")
	require.Equal(t, ptr.To(int64(30)), got.DeletionGracePeriodSeconds, "the default of the spec")
	require.False(t, got.DeletionTimestamp.Time.Before(before.Add(30*time.Second)))
	require.EqualValues(t, 2, got.Generation)

	require.NoError(t, pods.Delete(t.Context(), "web", *metav1.NewDeleteOptions(60)))
	require.Equal(t, got, stored(t, server, "web"), "a longer grace changes nothing")
	require.NoError(t, pods.Delete(t.Context(), "web", *metav1.NewDeleteOptions(5)))
	require.Equal(t, ptr.To(int64(5)), stored(t, server, "web").DeletionGracePeriodSeconds)
	require.NoError(t, pods.Delete(t.Context(), "web", *metav1.NewDeleteOptions(0)))
	require.Empty(t, server.Pods())
	require.True(t, apierrors.IsNotFound(pods.Delete(t.Context(), "web", *metav1.NewDeleteOptions(0))))
}

func TestDeleteAtOnceAnswersWithTheObject(t *testing.T) {
	unscheduled, ended := pod("unscheduled"), pod("ended")
	unscheduled.Spec.NodeName, ended.Status.Phase = "", v1.PodSucceeded
	server := start(t, pod("web"), unscheduled, ended, node("node-1"))
	for path, body := range map[string]string{
		"/api/v1/namespaces/default/pods/web":         `{"gracePeriodSeconds":0}`,
		"/api/v1/namespaces/default/pods/unscheduled": "",
		"/api/v1/namespaces/default/pods/ended":       `{"gracePeriodSeconds":60}`,
		"/api/v1/nodes/node-1":                        "",
	} {
		code, answer := ask(t, server, http.MethodDelete, path, "", body)
		require.Equal(t, http.StatusOK, code)
		require.Contains(t, answer, `"deletionGracePeriodSeconds":0`, path)
		code, _ = ask(t, server, http.MethodGet, path, "", "")
		require.Equal(t, http.StatusNotFound, code, path)
	}
}

func TestDeletePreconditions(t *testing.T) {
	server := start(t, pod("web"), node("node-1"))
	client := clientFor(t, server)
	remove := map[string]func(*metav1.Preconditions) error{
		"pod": func(only *metav1.Preconditions) error {
			return client.Pods("default").Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0)), Preconditions: only})
		},
		"node": func(only *metav1.Preconditions) error {
			return client.Nodes().Delete(t.Context(), "node-1", metav1.DeleteOptions{Preconditions: only})
		},
	}
	n, _ := server.Node("node-1")
	is := map[string]*metav1.ObjectMeta{"pod": &stored(t, server, "web").ObjectMeta, "node": &n.ObjectMeta}
	for kind, remove := range remove {
		t.Run(kind, func(t *testing.T) {
			for _, other := range []*metav1.Preconditions{{UID: ptr.To(types.UID("another"))}, {ResourceVersion: ptr.To("0")}} {
				require.True(t, apierrors.IsConflict(remove(other)))
			}
			require.NoError(t, remove(&metav1.Preconditions{UID: &is[kind].UID, ResourceVersion: &is[kind].ResourceVersion}))
			require.True(t, apierrors.IsNotFound(remove(nil)))
		})
	}
}

func TestFinalizersHoldWhatIsDeleted(t *testing.T) {
	p, n := pod("web"), node("node-1")
	p.Finalizers, n.Finalizers = []string{"example.com/hold"}, []string{"example.com/hold"}
	server := start(t, p, n)
	client := clientFor(t, server)
	require.NoError(t, client.Pods("default").Delete(t.Context(), "web", *metav1.NewDeleteOptions(0)))
	require.NoError(t, client.Pods("default").Delete(t.Context(), "web", *metav1.NewDeleteOptions(0)))
	require.NoError(t, client.Nodes().Delete(t.Context(), "node-1", metav1.DeleteOptions{}))
	require.NotNil(t, stored(t, server, "web").DeletionTimestamp)
	held, ok := server.Node("node-1")
	require.True(t, ok)
	require.NotNil(t, held.DeletionTimestamp)

	_, err := patch(t, server, strategic, `{"status":{"phase":"Failed"}}`, "status")
	require.NoError(t, err)
	require.Len(t, server.Pods(), 1)
	got, err := patch(t, server, merge, `{"metadata":{"finalizers":null}}`)
	require.NoError(t, err)
	require.NotNil(t, got.DeletionTimestamp)
	require.Empty(t, server.Pods(), "the last finalizer was in the way")
}

func TestFinalizersGoBeforeTheGraceIsOver(t *testing.T) {
	p := pod("web")
	p.Finalizers = []string{"example.com/hold"}
	server := start(t, p)
	require.NoError(t, clientFor(t, server).Pods("default").Delete(t.Context(), "web", *metav1.NewDeleteOptions(30)))
	_, err := patch(t, server, merge, `{"metadata":{"finalizers":null}}`)
	require.NoError(t, err)
	require.Len(t, server.Pods(), 1, "the node has not ended it yet")
}

func TestDeleteRefuses(t *testing.T) {
	server := start(t, pod("web"))
	for name, test := range map[string]struct {
		contentType, body string
		code              int
	}{
		"CBOR":        {"application/cbor", `x`, http.StatusUnsupportedMediaType},
		"no protobuf": {"application/vnd.kubernetes.protobuf", `x`, http.StatusBadRequest},
		"no JSON":     {"", `{`, http.StatusBadRequest},
		"options":     {"", `{"orphanDependents":true,"propagationPolicy":"Orphan"}`, http.StatusUnprocessableEntity},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := ask(t, server, http.MethodDelete, "/api/v1/namespaces/default/pods/web", test.contentType, test.body)
			require.Equal(t, test.code, code, body)
			require.Nil(t, stored(t, server, "web").DeletionTimestamp)
		})
	}
}
