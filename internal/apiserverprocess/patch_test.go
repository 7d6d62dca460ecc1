package apiserverprocess_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyv1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
)

// A pod has two conditions, and a strategic merge patch has one of them. The other condition is kept, because
// conditions are merged by type. Package apistatus relies on this.
func TestStrategicMergePatchMergesConditions(t *testing.T) {
	c := startCluster(t)
	before := c.createRunning(t, "web")
	got, err := c.patch(t.Context(), strategic, `{"status":{"phase":"Failed","conditions":[{"type":"Ready","status":"False"}]}}`, "status")
	require.NoError(t, err)
	require.Equal(t, v1.PodFailed, got.Status.Phase)
	require.Len(t, got.Status.Conditions, 2, "Ready and PodScheduled")
	require.Contains(t, got.Status.Conditions, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse})
	require.NotEqual(t, before.ResourceVersion, got.ResourceVersion)
	require.Equal(t, before.Generation, got.Generation, "only a new spec changes the generation")
	require.Equal(t, got, c.pod(t, "web"))
}

// The test has set the pod's phase. The manager "agent" applies another phase, which the server refuses with a conflict,
// because the field belongs to another manager. A forced apply succeeds, and keeps the pod's two conditions.
func TestServerSideApplyOfAnotherManagersField(t *testing.T) {
	c := startCluster(t)
	c.createRunning(t, "web")
	failed := applyv1.Pod("web", "default").WithStatus(applyv1.PodStatus().WithPhase(v1.PodFailed))
	_, err := c.pods().ApplyStatus(t.Context(), failed, metav1.ApplyOptions{FieldManager: "agent"})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	got, err := c.pods().ApplyStatus(t.Context(), failed, metav1.ApplyOptions{FieldManager: "agent", Force: true})
	require.NoError(t, err)
	require.Equal(t, v1.PodFailed, got.Status.Phase)
	require.Len(t, got.Status.Conditions, 2)
}

// A server-side apply creates a missing pod with a label. The next apply of the same manager does not have the label, so the
// server removes it.
func TestServerSideApplyOfAMissingObject(t *testing.T) {
	c := startCluster(t)
	options := metav1.ApplyOptions{FieldManager: "agent"}
	got, err := c.pods().Apply(t.Context(), applyv1.Pod("api", "default").WithLabels(map[string]string{"app": "shop"}), options)
	require.NoError(t, err)
	require.Equal(t, "shop", got.Labels["app"])
	got, err = c.pods().Apply(t.Context(), applyv1.Pod("api", "default"), options)
	require.NoError(t, err)
	require.Empty(t, got.Labels)
}

// A patch of /status has metadata, a spec and a status. It changes the status and the labels, but neither the spec nor the
// owners.
func TestAPatchOfAStatusKeepsTheSpec(t *testing.T) {
	const both = `{"metadata":{"labels":{"app":"shop"},"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]},
		"spec":{"activeDeadlineSeconds":5},"status":{"phase":"Failed"}}`
	c := startCluster(t)
	c.createRunning(t, "web")
	got, err := c.patch(t.Context(), strategic, both, "status")
	require.NoError(t, err)
	require.Equal(t, v1.PodFailed, got.Status.Phase)
	require.Nil(t, got.Spec.ActiveDeadlineSeconds)
	require.EqualValues(t, 1, got.Generation)
	require.Equal(t, "shop", got.Labels["app"])
	require.Empty(t, got.OwnerReferences)
}

// A patch of a pod's own path has a spec and a status. It changes the spec, but not the status.
func TestAPatchOfAPodKeepsItsStatus(t *testing.T) {
	c := startCluster(t)
	c.createRunning(t, "web")
	got, err := c.patch(t.Context(), strategic, `{"spec":{"activeDeadlineSeconds":5},"status":{"phase":"Failed"}}`)
	require.NoError(t, err)
	require.Equal(t, v1.PodRunning, got.Status.Phase)
	require.Equal(t, ptr.To(int64(5)), got.Spec.ActiveDeadlineSeconds)
	require.EqualValues(t, 2, got.Generation, "a new spec increments the generation")
}

// Patches that change nothing are not stored: they are empty, have the pod's own phase or UID, or set metadata that clients
// cannot change. The pod keeps its resourceVersion, so a watcher sees no event.
func TestAPatchWithoutAChangeKeepsTheResourceVersion(t *testing.T) {
	c := startCluster(t)
	c.createRunning(t, "web")
	before := c.pod(t, "web")
	for _, same := range []string{`{}`, `{"status":{"phase":"Running"}}`, `{"metadata":{"uid":"` + string(before.UID) + `"}}`, `{"metadata":{"uid":null,"generation":9}}`} {
		got, err := c.patch(t.Context(), strategic, same, "status")
		require.NoError(t, err)
		require.Equal(t, before, got)
		require.Equal(t, before, c.pod(t, "web"))
	}
}

// Clients cannot change metadata that the server sets, such as the deletion timestamp. Depending on the field and on
// the path, a patch is either ignored, without an error, or refused, exactly as by kube-apiserver.
func TestPatchOfMetadataThatTheServerSets(t *testing.T) {
	const ignored = "" // the patch is: there is no error
	c := startCluster(t)
	c.createRunning(t, "web")
	for field, test := range map[string]struct {
		value      string
		ownPathErr string // of a patch of the pod's own path
		statusErr  string // of a patch of /status
	}{
		"creationTimestamp":          {value: `"2001-01-01T00:00:00Z"`, ownPathErr: ignored, statusErr: ignored},
		"deletionTimestamp":          {value: `"2001-01-01T00:00:00Z"`, ownPathErr: "metadata.deletionTimestamp: Invalid value", statusErr: ignored},
		"deletionGracePeriodSeconds": {value: `1`, ownPathErr: "metadata.deletionGracePeriodSeconds: Invalid value", statusErr: "metadata.deletionGracePeriodSeconds: Invalid value"},
		"generation":                 {value: `9`, ownPathErr: ignored, statusErr: ignored},
	} {
		for path, wantErr := range map[string]string{"": test.ownPathErr, "status": test.statusErr} {
			t.Run(field+path, func(t *testing.T) {
				subresources := []string{path}
				if path == "" {
					subresources = nil
				}
				before := c.pod(t, "web")
				_, err := c.patch(t.Context(), merge, `{"metadata":{"`+field+`":`+test.value+`}}`, subresources...)
				if wantErr == ignored {
					require.NoError(t, err)
				} else {
					require.True(t, apierrors.IsInvalid(err), "%v", err)
					require.ErrorContains(t, err, wantErr)
				}
				after := c.pod(t, "web")
				after.ResourceVersion, after.ManagedFields = before.ResourceVersion, before.ManagedFields // changed by every request
				require.Equal(t, before, after)
			})
		}
	}
}

// A UID in a patch is a precondition: if the pod has another one, the patch fails and the pod does not change. A pod that was
// deleted is not found, whatever the UID in the patch is. Package apistatus relies on these errors.
func TestAPatchWithAUID(t *testing.T) {
	c := startCluster(t)
	c.createRunning(t, "web")
	const ofAnother = `{"metadata":{"uid":"another"},"status":{"phase":"Failed"}}`
	_, err := c.patch(t.Context(), strategic, ofAnother, "status")
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.EqualError(t, err, `Pod "web" is invalid: metadata.uid: Invalid value: "another": field is immutable`)
	require.Equal(t, v1.PodRunning, c.pod(t, "web").Status.Phase)

	require.NoError(t, c.pods().Delete(t.Context(), "web", *metav1.NewDeleteOptions(0)))
	_, err = c.patch(t.Context(), strategic, ofAnother, "status")
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// A resourceVersion in a patch is a precondition: if the pod has another one, the patch fails with a conflict, on which package
// apistatus relies. The resourceVersion 0 means any version.
func TestAPatchWithAResourceVersion(t *testing.T) {
	c := startCluster(t)
	current := c.createRunning(t, "web").ResourceVersion
	patchVersion := func(version, phase string) error {
		_, err := c.patch(t.Context(), strategic, `{"metadata":{"resourceVersion":"`+version+`"},"status":{"phase":"`+phase+`"}}`, "status")
		return err
	}
	err := patchVersion("1", "Failed")
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.ErrorContains(t, err, `Operation cannot be fulfilled on pods "web": the object has been modified`)
	require.Equal(t, v1.PodRunning, c.pod(t, "web").Status.Phase)

	require.NoError(t, patchVersion(current, "Failed"))
	require.Equal(t, v1.PodFailed, c.pod(t, "web").Status.Phase)
	require.NoError(t, patchVersion("0", "Unknown"))
	require.Equal(t, v1.PodUnknown, c.pod(t, "web").Status.Phase)
}
