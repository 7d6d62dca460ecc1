package embedded_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/embedded"
	"github.com/kubegrace/kubegrace/validation"
)

// runScript returns a runtime in which a pod runs. The pod has the container app, which follows the script, the sidecar
// proxy, and an init container that is no sidecar.
func runScript(t *testing.T, script string) (*embedded.Runtime, *v1.Pod) {
	t.Helper()
	pod := &v1.Pod{}
	pod.UID, pod.Annotations = "uid", map[string]string{embedded.ScriptPrefix + "app": script}
	pod.Spec.Containers = []v1.Container{{Name: "app"}}
	pod.Spec.InitContainers = []v1.Container{{Name: "proxy", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}, {Name: "init"}}
	runtime, err := embedded.New([]*v1.Pod{pod})
	require.NoError(t, err)
	return runtime, pod
}

// running returns the names of a pod's running containers.
func running(t *testing.T, runtime *embedded.Runtime, pod *v1.Pod) (names []string) {
	t.Helper()
	containers, err := runtime.Running(t.Context(), pod)
	require.NoError(t, err)
	for _, c := range containers {
		names = append(names, c.Name)
	}
	return names
}

// A command in a container takes as long as the container's script says, or fails at its timeout.
func TestCommandsFollowTheScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime, _ := runScript(t, "{execTakes: 2s}")
		began := time.Now()
		_, err := runtime.RunInContainer(t.Context(), "uid/app", nil, 4*time.Second)
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, time.Since(began))
		_, err = runtime.RunInContainer(t.Context(), "uid/app", nil, time.Second)
		require.Error(t, err)
	})
}

// The stop of a container takes as long as its script says. The sidecar still runs afterwards, and the pod is listed until its
// sandbox is stopped.
func TestStopsFollowTheScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runtime, pod := runScript(t, "{exitAfterTerm: 3s}")
		require.Equal(t, []string{"proxy", "app"}, running(t, runtime, pod))
		began := time.Now()
		require.NoError(t, runtime.StopContainer(t.Context(), "uid/app", 10))
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Equal(t, []string{"proxy"}, running(t, runtime, pod))
		for _, podCount := range []int{1, 0} { // before and after the stop of the sandbox
			pods, err := runtime.Pods(t.Context())
			require.NoError(t, err)
			require.Len(t, pods, podCount)
			require.NoError(t, runtime.StopPodSandbox(t.Context(), pod))
		}
	})
}

// An invalid script is an error that names the annotation.
func TestInvalidScripts(t *testing.T) {
	for script, want := range map[string]string{
		"{exitAfterTerm: soon}": `invalid duration "soon"`,
		"{exitAfterTerm: -1s}":  "must not be negative",
		"{ignoresTerm: true}":   `unknown field "ignoresTerm"`,
		"dances":                "cannot unmarshal string",
	} {
		pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "app"}}}}
		pod.Annotations = map[string]string{embedded.ScriptPrefix + "app": script}
		_, err := embedded.New([]*v1.Pod{pod})
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "annotation node.kubegrace.dev/script.app")
	}
}

// load loads the pods of a folder with these files.
func load(t *testing.T, files map[string]string) (pods []*v1.Pod, warnings []string, err error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return embedded.Load(dir, validation.Options{})
}

// A pod without namespace and grace period gets those that the API server would set: default and 30 s.
func TestLoadSetsTheDefaultsOfTheAPIServer(t *testing.T) {
	pods, warnings, err := load(t, map[string]string{"pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app}]}\n"})
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, "default", pods[0].Namespace)
	require.EqualValues(t, 30, *pods[0].Spec.TerminationGracePeriodSeconds)
}

// A folder without pods is only worth a warning.
func TestLoadOfAFolderWithoutPods(t *testing.T) {
	_, warnings, err := load(t, nil)
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], ": has no pods in files that end in .yaml, .yml, .json or .manifest")
}

// Invalid YAML, an invalid hook, an unknown field, and manifests that are no pod or have no name are all named in one error.
func TestLoadNamesAllMistakes(t *testing.T) {
	_, _, err := load(t, map[string]string{
		"a.yml":  "kind: [",
		"b.json": `{"kind": "Service"}`,
		"c.yaml": "kind: Pod\nmetadata: {name: c}\nspec: {containers: [{name: app, lifecycle: {preStop: {sleep: {seconds: -1}}}}]}\n",
		"d.yaml": "kind: Pod\nspec: {containers: [{imag: nginx}]}\n",
		"e.yaml": "kind: List\nitems: [{kind: Pod}]\n",
		"f.yaml": "kind: Pod\nspec: {containers: [{name: app}]}\n",
	})
	for _, want := range []string{"a.yml: not valid YAML", "b.json: kind: ", "c.yaml: spec.containers[0].lifecycle.preStop.sleep", `d.yaml: json: `, `unknown object member name "imag" within "/spec/containers/0"`, "e.yaml: kind: ", "f.yaml: metadata.name: Required value"} {
		require.ErrorContains(t, err, want)
	}
}
