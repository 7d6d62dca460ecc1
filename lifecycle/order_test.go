//go:build go1.25

package lifecycle_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// Main containers end at 3 and 5 s. Then the last sidecar stops, and after it the first one.
func TestSidecarsStopLastInReverseOrder(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{ExitAfterTerm: time.Second})
		b.addSidecar("logs", nil, lifecycletest.Script{ExitAfterTerm: time.Second})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		b.addMain("batch", nil, lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		result := b.killPod()
		b.requireStop("app", 30, 0)
		b.requireStop("batch", 30, 0)
		b.requireStop("logs", 25, 5*time.Second)
		b.requireStop("proxy", 24, 6*time.Second)
		require.Equal(b, 6*time.Second, result.Containers[2].Waited)
		require.Equal(b, 7*time.Second, b.elapsed())
	})
}

// A sidecar waits for a main container that does not end, but not longer than until the deadline. It then
// has the 2 s that each container has at least.
func TestSidecarWaitsUntilTheDeadline(t *testing.T) {
	inBubble(t, graceSeconds(5), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		b.killPod()
		b.requireStop("proxy", 2, 5*time.Second)
	})
}

// orderingCase is a case of the kubelet's tests.
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

// testdata/ordering.yaml has the cases of the kubelet's own tests: how long each container must wait for
// others.
func TestVectorsTerminationOrdering(t *testing.T) {
	data, err := os.ReadFile("testdata/ordering.yaml")
	require.NoError(t, err)
	var vectors struct {
		Cases []orderingCase `json:"termination_ordering"`
	}
	require.NoError(t, yaml.UnmarshalStrict(data, &vectors))
	require.Len(t, vectors.Cases, 3)
	for _, c := range vectors.Cases {
		t.Run(c.Test, func(t *testing.T) { c.run(t) })
	}
}

// run terminates a pod as the case describes, and compares how many seconds each container has waited.
func (c orderingCase) run(t *testing.T) {
	grace := max(c.In.Grace, c.In.Waits["init"])
	inBubble(t, graceSeconds(grace), func(b *testBed) {
		script := lifecycletest.Script{ExitAfterTerm: time.Duration(max(c.In.ExitAfter, c.In.MainExitAfter) * float64(time.Second))}
		for _, name := range c.In.Sidecars {
			b.addSidecar(name, nil, script)
		}
		for _, name := range c.In.Main {
			b.addMain(name, nil, script)
		}
		got := map[string]int64{}
		for _, container := range b.killPod().Containers {
			got[container.Name] = int64(container.Waited.Seconds())
		}
		require.Equal(b, c.Want, got)
	})
}

// A container that never started or has exited delays no sidecar (k/k#125880).
func TestNoSidecarWaitsForAContainerThatDoesNotRun(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		b.addStopped("never")
		b.rt.Exit("app")
		require.Len(b, b.killPod().Containers, 1)
		b.requireStop("proxy", 60, 0)
	})
}

// The second of three sidecars has exited. The first waits for the third only.
func TestReverseOrderSkipsExitedSidecars(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addSidecar("first", nil, lifecycletest.Script{})
		b.addSidecar("second", nil, lifecycletest.Script{})
		b.addSidecar("third", nil, lifecycletest.Script{ExitAfterTerm: 4 * time.Second})
		b.rt.Exit("second")
		b.killPod()
		b.requireStop("first", 56, 4*time.Second)
	})
}

// Init and ephemeral containers have no order: they stop at once, and the sidecar does not wait for them.
// The events name the field of the spec that has each container.
func TestInitAndEphemeralContainersStopAtOnce(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.pod.Spec.InitContainers = append(b.pod.Spec.InitContainers, containerSpec("init", nil))
		b.rt.Start(b.pod, "init", "init", lifecycletest.Script{IgnoreTerm: true})
		b.pod.Spec.EphemeralContainers = []v1.EphemeralContainer{
			{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "shell"}}, {EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debug"}},
		}
		b.rt.Start(b.pod, "debug", "debug", lifecycletest.Script{IgnoreTerm: true})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		b.killPod()
		b.requireStop("init", 60, 0)
		b.requireStop("debug", 60, 0)
		b.requireStop("proxy", 57, 3*time.Second)
		fields := map[string]string{}
		for _, event := range b.events.All() {
			fields[event.Message] = event.Object.(*v1.ObjectReference).FieldPath
		}
		require.Equal(b, map[string]string{
			"Stopping container app":   "spec.containers{app}",
			"Stopping container init":  "spec.initContainers{init}",
			"Stopping container proxy": "spec.initContainers{proxy}",
			"Stopping container debug": "spec.ephemeralContainers{debug}",
		}, fields)
	})
}

// Hooks of sidecars run at the start of the termination, as in the kubelet, or in their turn.
func TestHooksAtTurn(t *testing.T) {
	scene := func(b *testBed) {
		b.addSidecar("proxy", scriptedExec(), lifecycletest.Script{Exec: commandTaking(2 * time.Second)})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		b.killPod()
	}
	inBubble(t, graceSeconds(30), func(b *testBed) {
		scene(b)
		require.Zero(b, b.rt.Execs()[0].At.Sub(b.start))
		b.requireStop("proxy", 25, 5*time.Second)
	})
	atTurn := func(o *lifecycle.TerminatorOptions) { o.HooksAtTurn = true }
	inBubble(t, graceSeconds(30), func(b *testBed) {
		scene(b)
		require.Equal(b, 5*time.Second, b.rt.Execs()[0].At.Sub(b.start))
		require.Equal(b, 25*time.Second, b.rt.Execs()[0].Timeout)
		b.requireStop("proxy", 23, 7*time.Second)
	}, atTurn)
	inBubble(t, graceSeconds(4), func(b *testBed) { // its turn comes at the deadline
		scene(b)
		require.Empty(b, b.rt.Execs())
		b.requireStop("proxy", 2, 4*time.Second)
	}, atTurn)
}
