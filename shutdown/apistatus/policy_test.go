//go:build go1.25

package apistatus_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// podsOfEachKind returns one pod for each kind that a policy distinguishes.
func podsOfEachKind() []*v1.Pod {
	daemon, static, deleted := workload("daemon", 0, 5), workload("static", 0, 5), workload("deleted", 0, 5)
	daemon.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: ptr.To(true)}}
	static.Annotations = map[string]string{"kubernetes.io/config.source": "file", "kubernetes.io/config.mirror": "h1", "kubernetes.io/config.hash": "h1"}
	deleted.DeletionTimestamp, deleted.DeletionGracePeriodSeconds = &before, ptr.To(int64(5))
	deleted.Status.ContainerStatuses = []v1.ContainerStatus{statusFromWord("app", sigterm)} // otherwise it may still run
	return []*v1.Pod{workload("web", 0, 5), daemon, static, deleted}
}

// phasesAtTheServer returns the phase of each of podsOfEachKind on the API server; "": gone.
func phasesAtTheServer(t *testing.T, c *cluster) map[string]v1.PodPhase {
	t.Helper()
	phases := map[string]v1.PodPhase{}
	for _, pod := range podsOfEachKind() {
		got, err := c.Clientset.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			phases[pod.Name] = ""
			continue
		}
		require.NoError(t, err)
		phases[pod.Name] = got.Status.Phase
	}
	return phases
}

// A node with four pods shuts down. Options.Policy decides what happens to them on the API server: they become Failed, stay
// Running, or are deleted (""). Pods of DaemonSets and static pods are never deleted by the policy. A pod that already had a
// deletion timestamp is always removed.
func TestThePodPolicyDecidesWhatBecomesOfThePods(t *testing.T) {
	for policy, want := range map[shutdown.PodPolicy]map[string]v1.PodPhase{
		shutdown.PolicySetTerminal: {"web": v1.PodFailed, "daemon": v1.PodFailed, "static": v1.PodFailed, "deleted": ""},
		shutdown.PolicyLeaveAsIs:   {"web": v1.PodRunning, "daemon": v1.PodRunning, "static": v1.PodRunning, "deleted": ""},
		shutdown.PolicyDelete:      {"web": "", "daemon": v1.PodRunning, "static": v1.PodRunning, "deleted": ""},
	} {
		t.Run(string(policy), func(t *testing.T) {
			inBubble(t, podsOfEachKind(), func(t *testing.T, c *cluster, a *agent) {
				a.opts.Policy = func(source.Kind) shutdown.PodPolicy { return policy }
				a.run()
				defer a.end()
				report := a.shutDown(source.KindReboot)
				require.Empty(t, report.Errors)
				require.Empty(t, unflushedNames(report))
				require.Equal(t, want, phasesAtTheServer(t, c))
			})
		})
	}
}
