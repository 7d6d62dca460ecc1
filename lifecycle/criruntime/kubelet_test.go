package criruntime

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The names of the kubelet's labels and annotations are those of each minor of Kubernetes. The file
// has, below a line with the version, the constants of pkg/kubelet/kuberuntime/labels.go and of
// k8s.io/kubelet/pkg/types/labels.go with their values.
func TestNamesAreThoseOfEachMinor(t *testing.T) {
	content, err := os.ReadFile("testdata/kubelet-names.txt")
	require.NoError(t, err)
	minors := strings.Split(string(content), "# k8s.io/kubernetes ")[1:]
	require.Len(t, minors, 6, "v0.32 to v0.37")
	for _, minor := range minors {
		lines := strings.Fields(minor)
		version, pairs := lines[0], lines[1:]
		names := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			names[pairs[i]] = pairs[i+1]
		}
		require.Equal(t, map[string]string{
			"KubernetesPodNameLabel":                 podNameLabel,
			"KubernetesPodNamespaceLabel":            podNamespaceLabel,
			"KubernetesPodUIDLabel":                  podUIDLabel,
			"KubernetesContainerNameLabel":           containerNameLabel,
			"containerHashLabel":                     "io.kubernetes.container.hash", // not used: it is no identity
			"containerPortsLabel":                    portsAnnotation,
			"containerPreStopHandlerLabel":           preStopAnnotation,
			"containerRestartCountLabel":             restartCountAnnotation,
			"containerTerminationMessagePathLabel":   messagePathAnnotation,
			"containerTerminationMessagePolicyLabel": messagePolicyAnnotation,
			"podDeletionGracePeriodLabel":            deletionGraceAnnotation,
			"podTerminationGracePeriodLabel":         terminationGraceAnnotation,
		}, names, version)
	}
}
