package embedded_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/embedded"
)

// podWith returns a pod with one container, app, and its script.
func podWith(script string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid", Annotations: map[string]string{embedded.ScriptPrefix + "app": script}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app"}}},
	}
}

func TestValidateScripts(t *testing.T) {
	const at = `metadata.annotations[nodeagent.kubegrace.dev/script.app]: Invalid value: `
	for script, want := range map[string]string{
		"":                    "",
		"exits 3s after TERM": "",
		"ignores TERM":        "",
		"exec takes 2s":       "",
		"exec fails":          "",
		"StopContainer fails": "",
		"StopContainer hangs": "",
		" exits  by itself after 5s , ignores TERM,": "",
		"exits soon after TERM":                      at + `"exits soon after TERM": "exits soon after TERM": "soon" is no time such as 3s or 500ms`,
		"exits -1s after TERM":                       at + `"exits -1s after TERM": "exits -1s after TERM": "-1s" is no time`,
		"exits by itself after 5":                    at + `"exits by itself after 5": "exits by itself after 5": "5" is no time`,
		"ignores term":                               at + `"ignores term": "ignores term" is not understood; known are`,
		"ignores TERM, runs for 5s":                  at + `"ignores TERM, runs for 5s": "runs for 5s" is not understood`,
	} {
		err := embedded.ValidateScripts(podWith(script)).ToAggregate()
		if want == "" {
			require.NoError(t, err, script)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}

func TestValidateScriptsOfUnknownContainer(t *testing.T) {
	pod := podWith("ignores TERM")
	pod.Spec.Containers[0].Name = "main"
	pod.Annotations["unrelated"] = "anything"
	require.EqualError(t, embedded.ValidateScripts(pod).ToAggregate(),
		`metadata.annotations[nodeagent.kubegrace.dev/script.app]: Invalid value: "ignores TERM": the pod has no container "app"`)
}
