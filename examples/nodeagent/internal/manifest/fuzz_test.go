package manifest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/manifest"
	"github.com/kubegrace/kubegrace/validation"
)

// For every content of a manifest, Load returns complete pods, the same each time, or an
// error that names the file.
func FuzzLoad(f *testing.F) {
	pod := manifestOf("web")
	for _, text := range []string{
		"", pod, pod + "---\n" + manifestOf("db"), "kind: List\nitems: []\n", `{"kind": "Pod"}`, "kind: [", "5", "- a",
		pod + "  initContainers: [{name: c, image: i, restartPolicy: Always, lifecycle: {preStop: {sleep: {seconds: 5}}}}]\n",
		strings.Replace(pod, "name: web", "name: ../../web", 1), "a: &a [*a]", pod + "\x00",
	} {
		f.Add([]byte(text))
	}
	dir := f.TempDir() // one process runs its inputs one after the other
	file := filepath.Join(dir, "pod.yaml")
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(file, text, 0o600))
		pods, _, err := manifest.Load(dir, validation.Options{})
		if err != nil {
			require.ErrorContains(t, err, file)
			require.Empty(t, pods)
			return
		}
		again, _, err := manifest.Load(dir, validation.Options{})
		require.NoError(t, err)
		require.Equal(t, pods, again)
		for _, pod := range pods {
			require.NotEmpty(t, pod.UID)
			require.NotEmpty(t, pod.Name)
			require.NotEmpty(t, pod.Namespace)
			require.NotEmpty(t, pod.Spec.Containers)
			require.NotNil(t, pod.Spec.TerminationGracePeriodSeconds)
			require.Equal(t, "file", pod.Annotations["kubernetes.io/config.source"])
		}
	})
}
