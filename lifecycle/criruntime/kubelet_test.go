package criruntime

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The kubelet's labels and annotations have the same names in each minor version, and this package uses them. For each minor
// version, testdata/kubelet-names.txt has the constants of pkg/kubelet/kuberuntime/labels.go and
// k8s.io/kubelet/pkg/types/labels.go.
func TestKubeletNamesInEachMinorVersion(t *testing.T) {
	content, err := os.ReadFile("testdata/kubelet-names.txt")
	require.NoError(t, err)
	minors := strings.Split(string(content), "# k8s.io/kubernetes ")[1:]
	require.Len(t, minors, 6, "v1.32 to v1.37")
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
			"containerHashLabel":                     "io.kubernetes.container.hash", // this package does not use it
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
