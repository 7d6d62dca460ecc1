//go:build go1.25

package lifecycle_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// orderingCase is a case of the kubelet's tests of the termination order. Times are in seconds.
type orderingCase struct {
	Test  string `json:"test"`
	Basis string `json:"basis"`
	In    struct {
		Sidecars      []string         `json:"sidecars"`
		Main          []string         `json:"main"`
		Waits         map[string]int64 `json:"waits"`
		MainExitAfter float64          `json:"main_exit_after"`
		Grace         int64            `json:"grace_each"`
		ExitAfter     float64          `json:"each_exits_after_its_turn"`
	} `json:"in"`
	Want map[string]int64 `json:"want"`
}

// A pod is terminated as each case of testdata/ordering.yaml says. The cases are the kubelet's own: they say how long each
// container must wait for others.
func TestVectorsTerminationOrdering(t *testing.T) {
	data, err := os.ReadFile("testdata/ordering.yaml")
	require.NoError(t, err)
	var vectors struct {
		Cases []orderingCase `json:"termination_ordering"`
	}
	require.NoError(t, yaml.UnmarshalStrict(data, &vectors))
	require.Len(t, vectors.Cases, 3)
	for _, c := range vectors.Cases {
		t.Run(c.Test, func(t *testing.T) { c.requireWaits(t) })
	}
}

// requireWaits terminates a pod as the case describes, and checks how many seconds each container has waited for others. A
// case of the kubelet has its grace period in Grace or in Waits["init"], and the time until a container exits in ExitAfter or
// in MainExitAfter; the other one is 0.
func (c orderingCase) requireWaits(t *testing.T) {
	grace := max(c.In.Grace, c.In.Waits["init"])
	inBubble(t, graceSeconds(grace), func(b *testBed) {
		script := lifecycletest.Script{ExitAfterTerm: time.Duration(max(c.In.ExitAfter, c.In.MainExitAfter) * float64(time.Second))}
		for _, name := range c.In.Sidecars {
			b.addSidecar(name, script)
		}
		for _, name := range c.In.Main {
			b.addMain(name, script)
		}
		got := map[string]int64{}
		for _, container := range b.killPod().Containers {
			got[container.Name] = b.stopCalls(container.Name)[0].atMilliseconds / 1000
		}
		require.Equal(b, c.Want, got)
	})
}

// A pod has a running container of each kind, and the container stray, which its spec lacks. The Killing event of each names the
// field of the spec in which the container is. For stray this is spec.containers.
func TestKillingEventNamesTheFieldOfTheContainer(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", lifecycletest.Script{})
		b.addSidecar("proxy", lifecycletest.Script{})
		b.pod.Spec.InitContainers = append(b.pod.Spec.InitContainers, v1.Container{Name: "init"})
		b.pod.Spec.EphemeralContainers = []v1.EphemeralContainer{
			{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "does-not-run"}},
			{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}},
		}
		for _, name := range []string{"init", "debug", "stray"} {
			b.rt.Start(b.pod, name, name, lifecycletest.Script{})
		}
		b.killPod()
		fields := map[string]string{}
		for _, event := range b.events.All() {
			require.Equal(b, v1.EventTypeNormal, event.Type)
			fields[event.Message] = event.Object.(*v1.ObjectReference).FieldPath
		}
		require.Equal(b, map[string]string{
			"Stopping container app":   "spec.containers{app}",
			"Stopping container init":  "spec.initContainers{init}",
			"Stopping container proxy": "spec.initContainers{proxy}",
			"Stopping container debug": "spec.ephemeralContainers{debug}",
			"Stopping container stray": "spec.containers{stray}",
		}, fields)
	})
}
