package apiserverprocess_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
)

// A kubelet registers its node together with a status, and the API server stores both. After that a patch of /status changes
// only the status, and a patch of the node only the spec.
func TestNodePatches(t *testing.T) {
	c := startCluster(t)
	registered, err := c.nodes().Create(t.Context(), &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
		Status:     v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Len(t, registered.Status.Conditions, 1)

	got, err := c.nodes().PatchStatus(t.Context(), "node-1", []byte(`{"spec":{"unschedulable":true},"status":{"conditions":[{"type":"Ready","status":"False"}]}}`))
	require.NoError(t, err)
	require.Len(t, got.Status.Conditions, 1, "it replaces the condition of this type")
	require.Equal(t, v1.ConditionFalse, got.Status.Conditions[0].Status)
	require.False(t, got.Spec.Unschedulable)

	got, err = c.nodes().Patch(t.Context(), "node-1", strategic, []byte(`{"spec":{"unschedulable":true},"status":{"conditions":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Len(t, got.Status.Conditions, 1)
	require.True(t, got.Spec.Unschedulable)
	require.Zero(t, got.Generation, "nodes have no generation")
	list, err := c.nodes().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.unschedulable=true"})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
}

// A new namespace is active and has the label with its name. It is deleted at once, because there is no
// controller that would empty it first.
func TestNamespaces(t *testing.T) {
	c := startCluster(t)
	namespaces := c.CoreV1().Namespaces()
	got, err := namespaces.Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, v1.NamespaceActive, got.Status.Phase)
	require.Equal(t, "shop", got.Labels[v1.LabelMetadataName])
	require.NoError(t, namespaces.Delete(t.Context(), "shop", metav1.DeleteOptions{}))
	_, err = namespaces.Get(t.Context(), "shop", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// A PUT creates a missing lease, as kubelets rely on. A later PUT changes it. Then one with the old resourceVersion is a
// conflict, and one without a resourceVersion is invalid.
func TestLeases(t *testing.T) {
	leases := startCluster(t).CoordinationV1().Leases("kube-node-lease")
	created, err := leases.Update(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, metav1.UpdateOptions{})
	require.NoError(t, err)

	changed := created.DeepCopy()
	changed.Spec.HolderIdentity = ptr.To("node-1")
	_, err = leases.Update(t.Context(), changed, metav1.UpdateOptions{})
	require.NoError(t, err)

	_, err = leases.Update(t.Context(), created, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	withoutVersion := created.DeepCopy()
	withoutVersion.ResourceVersion = ""
	_, err = leases.Update(t.Context(), withoutVersion, metav1.UpdateOptions{})
	require.True(t, apierrors.IsInvalid(err), "%v", err)

	stored, err := leases.Get(t.Context(), "node-1", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, ptr.To("node-1"), stored.Spec.HolderIdentity)
}

// client-go's event recorder sends a repeated event as a patch of the first. The server must apply it and
// notify watchers.
func TestRepeatedEventsAreCounted(t *testing.T) {
	c := startCluster(t)
	watcher, err := c.CoreV1().Events("default").Watch(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=web,reason=Shutdown"})
	require.NoError(t, err)
	t.Cleanup(watcher.Stop)
	broadcaster := record.NewBroadcaster(record.WithContext(t.Context()))
	t.Cleanup(broadcaster.Shutdown)
	broadcaster.StartRecordingToSink(&corev1.EventSinkImpl{Interface: c.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: "agent"})
	web := c.createRunning(t, "web")
	for count := int32(1); count <= 2; count++ {
		recorder.Event(web, v1.EventTypeNormal, "Shutdown", "the node is going down")
		event, ok := (<-watcher.ResultChan()).Object.(*v1.Event)
		require.True(t, ok)
		require.Equal(t, count, event.Count)
		require.Equal(t, web.UID, event.InvolvedObject.UID)
	}
}

// Clients such as kubectl find the resources by discovery. It must list exactly what the package's
// documentation names.
func TestDiscoveryListsTheServedResources(t *testing.T) {
	_, lists, err := startCluster(t).Discovery().ServerGroupsAndResources()
	require.NoError(t, err)
	var found []string
	for _, list := range lists {
		for i := range list.APIResources {
			found = append(found, list.GroupVersion+"/"+list.APIResources[i].Name)
		}
	}
	require.ElementsMatch(t, []string{
		"v1/pods", "v1/pods/status", "v1/nodes", "v1/nodes/status", "v1/namespaces", "v1/events",
		"v1/configmaps", "v1/secrets", "v1/services", "coordination.k8s.io/v1/leases",
	}, found)
}

// Kubelets speak protobuf. Watch, create, and delete with preconditions must work with it too.
func TestAProtobufClient(t *testing.T) {
	c := startCluster(t)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: c.url, QPS: -1, ContentConfig: rest.ContentConfig{
		ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf,
	}})
	require.NoError(t, err)
	pods := client.CoreV1().Pods("default")
	watcher, err := pods.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	t.Cleanup(watcher.Stop)
	created, err := pods.Create(t.Context(), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "api"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	seen, ok := (<-watcher.ResultChan()).Object.(*v1.Pod)
	require.True(t, ok)
	require.Equal(t, created.UID, seen.UID)
	wrong := metav1.NewDeleteOptions(0)
	wrong.Preconditions = metav1.NewUIDPreconditions("another")
	require.True(t, apierrors.IsConflict(pods.Delete(t.Context(), "api", *wrong)))
	require.NoError(t, pods.Delete(t.Context(), "api", *metav1.NewDeleteOptions(0)))
}
