package apiserverprocess_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The server sets the UID, the generation, the defaults and the first status of a new pod, whatever the
// client sends. A second pod with the name is refused.
func TestCreate(t *testing.T) {
	c := startCluster(t)
	given := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "mine", Generation: 7},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "web"}}},
		Status:     v1.PodStatus{Phase: v1.PodFailed},
	}
	got, err := c.pods().Create(t.Context(), given, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "default", got.Namespace, "from the path")
	require.NotEqual(t, given.UID, got.UID)
	require.NotEmpty(t, got.UID)
	require.EqualValues(t, 1, got.Generation)
	require.False(t, got.CreationTimestamp.IsZero())
	require.Equal(t, v1.PodStatus{Phase: v1.PodPending, QOSClass: v1.PodQOSBestEffort}, got.Status)
	require.Equal(t, ptr.To(int64(30)), got.Spec.TerminationGracePeriodSeconds)
	require.Equal(t, v1.RestartPolicyAlways, got.Spec.RestartPolicy)
	require.Equal(t, v1.PullIfNotPresent, got.Spec.Containers[0].ImagePullPolicy)
	require.Equal(t, got, c.pod(t, "web"))

	_, err = c.pods().Create(t.Context(), given, metav1.CreateOptions{})
	require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
}

// A pod has no name, but the beginning of one. The server adds five characters.
func TestCreateGeneratesAName(t *testing.T) {
	created, err := startCluster(t).pods().Create(t.Context(), &v1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Regexp(t, "^web-.{5}$", created.Name)
}

// The QoS class of a pod depends on its requests and limits for CPU and memory, as in Kubernetes. With limits for both it is
// Guaranteed, because a limit without a request is also the request. Without any it is BestEffort. Otherwise it is Burstable.
func TestQOSClass(t *testing.T) {
	c := startCluster(t)
	one, two := resource.MustParse("1"), resource.MustParse("2")
	for want, resources := range map[v1.PodQOSClass][]v1.ResourceRequirements{
		v1.PodQOSGuaranteed: {{Limits: v1.ResourceList{v1.ResourceCPU: one, v1.ResourceMemory: one}}},
		v1.PodQOSBurstable: {
			{Limits: v1.ResourceList{v1.ResourceCPU: one}},
			{Requests: v1.ResourceList{v1.ResourceMemory: one}},
			{Requests: v1.ResourceList{v1.ResourceCPU: one}, Limits: v1.ResourceList{v1.ResourceCPU: two, v1.ResourceMemory: one}},
		},
		v1.PodQOSBestEffort: {{}},
	} {
		for _, requirements := range resources {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}, Spec: v1.PodSpec{Containers: []v1.Container{{Resources: requirements}}}}
			got, err := c.pods().Create(t.Context(), pod, metav1.CreateOptions{})
			require.NoError(t, err)
			require.Equal(t, want, got.Status.QOSClass, "%v", requirements)
		}
	}
}

// A PUT of a pod has new labels, a new spec and a new status. It changes everything but the status.
func TestAPutOfAPodKeepsItsStatus(t *testing.T) {
	c := startCluster(t)
	changed := c.createRunning(t, "web")
	changed.Labels, changed.Spec.ActiveDeadlineSeconds, changed.Status.Phase = map[string]string{"app": "shop"}, ptr.To(int64(100)), v1.PodFailed
	got, err := c.pods().Update(t.Context(), changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, changed.Labels, got.Labels)
	require.Equal(t, changed.Spec, got.Spec)
	require.EqualValues(t, 2, got.Generation, "a new spec increments the generation of 1")
	require.Equal(t, v1.PodRunning, got.Status.Phase)
}

// A PUT of a pod's /status has a new node, QoS class and phase. It changes the phase, but not the spec, nor the QoS class,
// which the server sets.
func TestAPutOfAStatusKeepsThePod(t *testing.T) {
	c := startCluster(t)
	changed := c.createRunning(t, "web")
	changed.Spec.NodeName, changed.Status.QOSClass, changed.Status.Phase = "node-2", "mine", v1.PodFailed
	got, err := c.pods().UpdateStatus(t.Context(), changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, v1.PodFailed, got.Status.Phase)
	require.Equal(t, v1.PodQOSBestEffort, got.Status.QOSClass)
	require.Equal(t, "node-1", got.Spec.NodeName)
	require.EqualValues(t, 1, got.Generation)
}

// The pod has been changed since the test has read it. A PUT of the pod as it was read, with its old resourceVersion, is a
// conflict. A PUT with no resourceVersion, or 0, replaces any version.
func TestPutPreconditions(t *testing.T) {
	c := startCluster(t)
	old := c.createRunning(t, "web")
	changed := old.DeepCopy()
	changed.Labels = map[string]string{"app": "shop"}
	_, err := c.pods().Update(t.Context(), changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = c.pods().UpdateStatus(t.Context(), old, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, "the object has been modified; please apply your changes to the latest version and try again")
	for _, anyVersion := range []string{"", "0"} {
		old.ResourceVersion = anyVersion
		_, err = c.pods().Update(t.Context(), old, metav1.UpdateOptions{})
		require.NoError(t, err, "resourceVersion %q", anyVersion)
	}
}
