package apiserverprocess_test

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

// A pod on a node is deleted. It stays in the API server with a deletion timestamp, which a status update does not change,
// until its node deletes it with 0 s.
func TestAGracefulDeleteKeepsThePod(t *testing.T) {
	c := startCluster(t)
	c.createRunning(t, "web")
	before := time.Now().Truncate(time.Second)
	require.NoError(t, c.pods().Delete(t.Context(), "web", metav1.DeleteOptions{}))
	got := c.pod(t, "web")
	require.Equal(t, ptr.To(int64(30)), got.DeletionGracePeriodSeconds, "the default of the spec")
	require.False(t, got.DeletionTimestamp.Time.Before(before.Add(30*time.Second)), "the end of the grace period")
	require.EqualValues(t, 1+1, got.Generation, "the delete increments it")

	// The node updates the status.
	_, err := c.patch(t.Context(), strategic, `{"status":{"phase":"Failed"}}`, "status")
	require.NoError(t, err)
	require.NotNil(t, c.pod(t, "web").DeletionTimestamp)
	require.Equal(t, v1.PodFailed, c.pod(t, "web").Status.Phase)

	// The node deletes the pod.
	require.NoError(t, c.pods().Delete(t.Context(), "web", *metav1.NewDeleteOptions(0)))
	_, err = c.pods().Get(t.Context(), "web", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.True(t, apierrors.IsNotFound(c.pods().Delete(t.Context(), "web", *metav1.NewDeleteOptions(0))))
}

// A pod is being deleted with its 30 s. A delete with a longer grace period changes nothing, and one with 5 s shortens the
// grace period.
func TestAFurtherDeleteOnlyShortensTheGracePeriod(t *testing.T) {
	c := startCluster(t)
	c.createRunning(t, "web")
	require.NoError(t, c.pods().Delete(t.Context(), "web", metav1.DeleteOptions{}))
	deleted := c.pod(t, "web")
	require.NoError(t, c.pods().Delete(t.Context(), "web", *metav1.NewDeleteOptions(60)))
	require.Equal(t, deleted, c.pod(t, "web"))
	require.NoError(t, c.pods().Delete(t.Context(), "web", *metav1.NewDeleteOptions(5)))
	require.Equal(t, ptr.To(int64(5)), c.pod(t, "web").DeletionGracePeriodSeconds)
}

// A delete removes an object at once if nothing has to be terminated: the grace period is 0, the pod is on no node, the
// pod has ended, or the object is a node. The response to the delete of a pod is the removed pod, and that of a node is
// a status.
func TestAnImmediateDeleteRemovesTheObject(t *testing.T) {
	c := startCluster(t)
	c.createRunning(t, "web")
	c.createRunning(t, "unscheduled", func(pod *v1.Pod) { pod.Spec.NodeName = "" })
	c.createRunning(t, "ended")
	_, err := c.pods().Patch(t.Context(), "ended", merge, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	_, err = c.nodes().Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	for path, test := range map[string]struct{ body, response string }{
		"/api/v1/namespaces/default/pods/web":         {body: `{"gracePeriodSeconds":0}`, response: `"kind":"Pod"`},
		"/api/v1/namespaces/default/pods/unscheduled": {body: "", response: `"kind":"Pod"`},
		"/api/v1/namespaces/default/pods/ended":       {body: `{"gracePeriodSeconds":60}`, response: `"kind":"Pod"`},
		"/api/v1/nodes/node-1":                        {body: "", response: `"status":"Success"`},
	} {
		t.Run(path, func(t *testing.T) {
			code, response := c.request(t, http.MethodDelete, path, test.body)
			require.Equal(t, http.StatusOK, code)
			require.Contains(t, response, test.response)
			const noBody = ""
			code, _ = c.request(t, http.MethodGet, path, noBody)
			require.Equal(t, http.StatusNotFound, code)
		})
	}
}

// A delete has preconditions. If its UID or resourceVersion is not that of the stored pod or node, it is refused, so that
// nobody deletes a replacement by mistake. With the right ones it removes the object.
func TestDeletePreconditions(t *testing.T) {
	c := startCluster(t)
	pod := c.createRunning(t, "web")
	node, err := c.nodes().Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	for kind, test := range map[string]struct {
		stored   metav1.ObjectMeta
		deleteIf func(*metav1.Preconditions) error // nil: without preconditions
	}{
		"pod": {stored: pod.ObjectMeta, deleteIf: func(preconditions *metav1.Preconditions) error {
			return c.pods().Delete(t.Context(), "web", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0)), Preconditions: preconditions})
		}},
		"node": {stored: node.ObjectMeta, deleteIf: func(preconditions *metav1.Preconditions) error {
			return c.nodes().Delete(t.Context(), "node-1", metav1.DeleteOptions{Preconditions: preconditions})
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			for _, wrong := range []*metav1.Preconditions{{UID: ptr.To(types.UID("another"))}, {ResourceVersion: ptr.To("0")}} {
				err := test.deleteIf(wrong)
				require.True(t, apierrors.IsConflict(err), "%v", err)
			}
			require.NoError(t, test.deleteIf(&metav1.Preconditions{UID: &test.stored.UID, ResourceVersion: &test.stored.ResourceVersion}))
			require.True(t, apierrors.IsNotFound(test.deleteIf(nil)))
		})
	}
}
