package embedded_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/embedded"
	"github.com/kubegrace/kubegrace/validation"
)

// podWith returns a pod with one container, app, which has this script. The container's ID is uid/app.
func podWith(script string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "ns", UID: "uid", Annotations: map[string]string{embedded.ScriptPrefix + "app": script}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app"}}},
	}
}

// play returns a runtime in which a pod runs.
func play(t *testing.T, pod *v1.Pod) *embedded.Runtime {
	t.Helper()
	rt, err := embedded.New([]*v1.Pod{pod})
	require.NoError(t, err)
	return rt
}

// A container is stopped with a grace period of 10 s. It takes as long as its script says, and is killed after
// 10 s if it ignores SIGTERM.
func TestScriptsDecideHowLongAStopTakes(t *testing.T) {
	for script, want := range map[string]time.Duration{
		"":                    0,
		"{exitAfterTerm: 3s}": 3 * time.Second,
		"{ignoreTerm: true}":  10 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			rt, began := play(t, podWith(script)), time.Now()
			require.NoError(t, rt.StopContainer(t.Context(), "uid/app", 10))
			require.Equal(t, want, time.Since(began), script)
			<-rt.Exited("uid/app")
		})
	}
}

// A command that takes 2 s by its script fails at its timeout of 1 s. A script that cannot be parsed is an
// error of New, which names the annotation.
func TestScriptedCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := play(t, podWith("{execTakes: 2s}")).RunInContainer(t.Context(), "uid/app", []string{"true"}, time.Second)
		require.Error(t, err, "the timeout ends the command")
	})
	_, err := embedded.New([]*v1.Pod{podWith("dances")})
	require.ErrorContains(t, err, "annotation node.kubegrace.dev/script.app: ")
}

// A pod has a sidecar, a plain init container and a main container, which is killed. The main container must
// then have exit code 137, while the sidecar still runs. The pod stays in the list until its sandbox is
// stopped.
func TestAPodIsListedUntilItsSandboxIsStopped(t *testing.T) {
	pod := podWith("{ignoreTerm: true}")
	pod.Spec.InitContainers = []v1.Container{{Name: "proxy", RestartPolicy: ptr.To(v1.ContainerRestartPolicyAlways)}, {Name: "init"}}
	rt := play(t, pod)
	listed, err := rt.Pods(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"proxy", "app"}, running(t, rt, listed[0]))
	require.NoError(t, rt.StopContainer(t.Context(), "uid/app", 0))
	require.Equal(t, []string{"proxy"}, running(t, rt, listed[0]))
	status := rt.PodStatus(t.Context(), listed[0])
	require.EqualValues(t, 137, status.ContainerStatuses[0].State.Terminated.ExitCode)
	require.Equal(t, "Error", status.ContainerStatuses[0].State.Terminated.Reason)
	require.NotNil(t, status.InitContainerStatuses[0].State.Running)
	require.NoError(t, rt.StopPodSandbox(t.Context(), listed[0]))
	listed, err = rt.Pods(t.Context())
	require.NoError(t, err)
	require.Empty(t, listed)
	require.NoError(t, rt.Close())
}

// running returns the names of a pod's running containers.
func running(t *testing.T, rt *embedded.Runtime, pod *v1.Pod) (names []string) {
	t.Helper()
	containers, err := rt.Running(t.Context(), pod)
	require.NoError(t, err)
	for _, c := range containers {
		names = append(names, c.Name)
	}
	return names
}

// A folder has a script for a container that does not exist, a Service, invalid YAML, and a file of another
// type. One error must name the first three, and the last one is ignored.
func TestLoadNamesEveryProblem(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {node.kubegrace.dev/script.main: dances}}\nspec: {containers: [{name: app}]}\n",
		"b.json": `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b"}}`,
		"c.yml":  "kind: [",
		"d.txt":  "not read",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	_, _, err := embedded.Load(dir, validation.Options{})
	for _, want := range []string{`the pod has no container "main"`, "b.json", "c.yml: not valid YAML"} {
		require.ErrorContains(t, err, want)
	}
	_, _, err = embedded.Load(filepath.Join(dir, "missing"), validation.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A pod without namespace and grace period gets those that the API server would set: default and 30 s. A
// folder without manifests is only worth a warning.
func TestLoadSetsDefaults(t *testing.T) {
	dir := t.TempDir()
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app}]}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pod.yaml"), []byte(text), 0o600))
	pods, warnings, err := embedded.Load(dir, validation.Options{})
	require.NoError(t, err)
	require.Empty(t, warnings)
	require.Equal(t, "default", pods[0].Namespace)
	require.EqualValues(t, 30, *pods[0].Spec.TerminationGracePeriodSeconds)
	_, warnings, err = embedded.Load(t.TempDir(), validation.Options{})
	require.NoError(t, err)
	require.Len(t, warnings, 1)
}
