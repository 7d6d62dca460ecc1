package apistatustest_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/shutdown/apistatus/apistatustest"
)

const (
	strategic = types.StrategicMergePatchType
	merge     = types.MergePatchType
)

// patch patches the pod web.
func patch(t *testing.T, server *apistatustest.Server, how types.PatchType, body string, subresources ...string) (*v1.Pod, error) {
	t.Helper()
	return clientFor(t, server).Pods("default").Patch(t.Context(), "web", how, []byte(body), metav1.PatchOptions{}, subresources...)
}

// ready is a pod with two conditions.
func ready() *v1.Pod {
	web := pod("web")
	web.Status.Conditions = []v1.PodCondition{
		{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now()},
		{Type: v1.PodScheduled, Status: v1.ConditionTrue},
	}
	return web
}

func TestStrategicMergePatchMergesConditions(t *testing.T) {
	server := start(t, ready())
	before := stored(t, server, "web")
	got, err := patch(t, server, strategic, `{"status":{"phase":"Failed","conditions":[{"type":"Ready","status":"False"}]}}`, "status")
	require.NoError(t, err)
	require.Equal(t, v1.PodFailed, got.Status.Phase)
	require.Len(t, got.Status.Conditions, 2)
	require.Equal(t, v1.ConditionFalse, got.Status.Conditions[0].Status)
	require.NotEqual(t, before.ResourceVersion, got.ResourceVersion)
	require.Equal(t, before.Generation, got.Generation)
	require.Equal(t, got, stored(t, server, "web"))
}

func TestMergePatchReplacesConditions(t *testing.T) {
	server := start(t, ready())
	got, err := patch(t, server, merge, `{"status":{"phase":null,"conditions":[{"type":"Ready","status":"False"}]}}`, "status")
	require.NoError(t, err)
	require.Empty(t, got.Status.Phase)
	require.Len(t, got.Status.Conditions, 1)
}

func TestNodesArePatched(t *testing.T) {
	server := start(t, node("node-1"))
	nodes := clientFor(t, server).Nodes()
	_, err := nodes.PatchStatus(t.Context(), "node-1", []byte(`{"spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready","status":"False"}]}}`))
	require.NoError(t, err)
	got, _ := server.Node("node-1")
	require.Len(t, got.Status.Conditions, 1)
	require.False(t, got.Spec.Unschedulable)

	_, err = nodes.Patch(t.Context(), "node-1", strategic, []byte(`{"spec":{"unschedulable":true},"status":{"conditions":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	got, _ = server.Node("node-1")
	require.Len(t, got.Status.Conditions, 1)
	require.True(t, got.Spec.Unschedulable)
	require.Zero(t, got.Generation, "a node has none")
}

func TestPatchOfOnePartLeavesTheOther(t *testing.T) {
	both := `{"metadata":{"labels":{"app":"shop"}},"spec":{"activeDeadlineSeconds":5},"status":{"phase":"Failed"}}`
	server := start(t, pod("web"))
	got, err := patch(t, server, strategic, both, "status")
	require.NoError(t, err)
	require.Equal(t, v1.PodFailed, got.Status.Phase)
	require.Nil(t, got.Spec.ActiveDeadlineSeconds)
	require.EqualValues(t, 1, got.Generation)

	server = start(t, pod("web"))
	got, err = patch(t, server, strategic, both)
	require.NoError(t, err)
	require.Equal(t, v1.PodRunning, got.Status.Phase)
	require.Equal(t, ptr.To(int64(5)), got.Spec.ActiveDeadlineSeconds)
	require.EqualValues(t, 2, got.Generation, "a new spec is a new generation")
	require.Equal(t, "shop", got.Labels["app"])
}

func TestPatchWithoutAChangeIsNoNewVersion(t *testing.T) {
	server := start(t, ready())
	before := stored(t, server, "web")
	for _, same := range []string{`{}`, `{"status":{"phase":"Running"}}`, `{"metadata":{"uid":"uid-of-web"}}`, `{"metadata":{"uid":null,"generation":9}}`} {
		got, err := patch(t, server, strategic, same, "status")
		require.NoError(t, err)
		require.Equal(t, before, got)
		require.Equal(t, before, stored(t, server, "web"))
	}
}

func TestPatchKeepsWhatTheServerOwns(t *testing.T) {
	server := start(t, pod("web"))
	before := stored(t, server, "web")
	got, err := patch(t, server, merge, `{"metadata":{"creationTimestamp":"2001-01-01T00:00:00Z","deletionTimestamp":"2001-01-01T00:00:00Z","deletionGracePeriodSeconds":1,"labels":{"a":"b"}}}`)
	require.NoError(t, err)
	require.True(t, before.CreationTimestamp.Equal(&got.CreationTimestamp))
	require.Nil(t, got.DeletionTimestamp, "only a DELETE sets it")
	require.Nil(t, got.DeletionGracePeriodSeconds)
}

func TestPatchOfAnotherPodOrVersion(t *testing.T) {
	server := start(t, pod("web"))
	before := stored(t, server, "web")
	_, err := patch(t, server, strategic, `{"metadata":{"uid":"another"},"status":{"phase":"Failed"}}`, "status")
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.EqualError(t, err, `Pod "web" is invalid: metadata.uid: Invalid value: "another": field is immutable`)
	for _, old := range []string{`{"metadata":{"resourceVersion":"0"}}`, `{"metadata":{"resourceVersion":"0","uid":"another"}}`} {
		_, err = patch(t, server, strategic, old, "status")
		require.True(t, apierrors.IsConflict(err), "%v", err)
		require.ErrorContains(t, err, `Operation cannot be fulfilled on pods "web": the object has been modified`)
	}
	require.Equal(t, before, stored(t, server, "web"))
	_, err = patch(t, server, strategic, `{"metadata":{"resourceVersion":"`+before.ResourceVersion+`"},"status":{"phase":"Failed"}}`, "status")
	require.NoError(t, err)
}

func TestPatchRefuses(t *testing.T) {
	server := start(t, pod("web"))
	for name, test := range map[string]struct {
		how  types.PatchType
		body string
		code int
	}{
		"JSON patch":        {types.JSONPatchType, `[]`, http.StatusUnsupportedMediaType},
		"server-side apply": {types.ApplyYAMLPatchType, `{}`, http.StatusUnsupportedMediaType},
		"no type":           {"", `{}`, http.StatusUnsupportedMediaType},
		"no object":         {merge, `[]`, http.StatusBadRequest},
		"no JSON":           {strategic, `{`, http.StatusBadRequest},
		"directive":         {strategic, `{"status":{"$patch":"explode"}}`, http.StatusBadRequest},
		"type of a field":   {merge, `{"status":{"phase":1}}`, http.StatusBadRequest},
		"name":              {merge, `{"metadata":{"name":"api"}}`, http.StatusBadRequest},
		"namespace":         {merge, `{"metadata":{"namespace":"other"}}`, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			code, body := ask(t, server, http.MethodPatch, "/api/v1/namespaces/default/pods/web/status", string(test.how), test.body)
			require.Equal(t, test.code, code, body)
		})
	}
	_, err := clientFor(t, server).Pods("default").Patch(t.Context(), "api", merge, []byte(`{}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}
