package apistatus_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// The words that stand for container statuses in this file.
const (
	waits    = "waits"
	runs     = "runs"
	restarts = "restarts" // waits, after an earlier run
	succeeds = "exit 0"
	sigterm  = "exit 143"    // ended by the signal
	unknown  = "unknown 137" // what the kubelet writes if it does not know the exit code
	noState  = "no state"
)

// statusFromWord returns the container status that a word stands for.
func statusFromWord(name, word string) v1.ContainerStatus {
	status := v1.ContainerStatus{Name: name, Ready: word == runs, Started: ptr.To(word == runs)}
	exit := func(code int32) *v1.ContainerStateTerminated { return &v1.ContainerStateTerminated{ExitCode: code} }
	switch word {
	case waits, restarts:
		status.State.Waiting = &v1.ContainerStateWaiting{Reason: "ContainerCreating"}
	case runs:
		status.State.Running = &v1.ContainerStateRunning{StartedAt: before}
	case succeeds:
		status.State.Terminated = exit(0)
	case sigterm:
		status.State.Terminated = exit(143)
	}
	if word == restarts {
		status.LastTerminationState.Terminated = exit(1)
	}
	return status
}

// statusesFromWords returns one container status for each word (the constants above, such as runs or waits). The containers
// are named 0, 1, and so on.
func statusesFromWords(words []string) []v1.ContainerStatus {
	var all []v1.ContainerStatus
	for i, word := range words {
		all = append(all, statusFromWord(strconv.Itoa(i), word))
	}
	return all
}

// wordsFromStatuses returns a word for each status, so that a test can compare whole lists: a constant as for statusesFromWords, or
// "unknown 137" for a container that was lost, with its exit code.
func wordsFromStatuses(t *testing.T, statuses []v1.ContainerStatus) []string {
	t.Helper()
	var all []string
	for _, status := range statuses {
		switch state := status.State; {
		case state.Running != nil:
			all = append(all, runs)
		case state.Terminated != nil && state.Terminated.Reason == "ContainerStatusUnknown":
			require.Equal(t, "The container could not be located when the pod was terminated", state.Terminated.Message)
			require.False(t, status.Ready)
			require.False(t, *status.Started)
			all = append(all, fmt.Sprintf("unknown %d", state.Terminated.ExitCode))
		case state.Terminated != nil:
			all = append(all, fmt.Sprintf("exit %d", state.Terminated.ExitCode))
		case status.LastTerminationState.Terminated != nil:
			all = append(all, restarts)
		default:
			all = append(all, waits)
		}
	}
	return all
}

// containersOf returns n containers, named 0, 1, and so on.
func containersOf(n int) []v1.Container {
	var all []v1.Container
	for i := range n {
		all = append(all, v1.Container{Name: strconv.Itoa(i)})
	}
	return all
}

// sidecarsOf returns n sidecars, named 0, 1, and so on.
func sidecarsOf(n int) []v1.Container {
	sidecars := containersOf(n)
	for i := range sidecars {
		sidecars[i].RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
	}
	return sidecars
}

// FlushPod writes a pod with a terminal phase. Each case has the container statuses that the node knows, and those that the API server
// must have then; a word such as runs stands for a status. Every container that counts as started has ended, with the exit code 137
// (unknown) if its own is not known; the others still wait. As in the kubelet, these count as started: the first init container, all up
// to the last one that has run, and all regular containers if one of them has run, the last init container has succeeded, or there
// are no init containers.
func TestContainerStatusesInATerminalPhase(t *testing.T) {
	type words = []string
	type lists struct{ init, main, ephemeral words }
	for name, test := range map[string]struct{ node, want lists }{
		"all running":                  {node: lists{main: words{runs, runs}}, want: lists{main: words{unknown, unknown}}},
		"known exit codes":             {node: lists{main: words{sigterm, runs, succeeds}}, want: lists{main: words{sigterm, unknown, succeeds}}},
		"no init containers":           {node: lists{main: words{waits, restarts, noState}}, want: lists{main: words{unknown, unknown, unknown}}},
		"ephemeral":                    {node: lists{main: words{sigterm}, ephemeral: words{runs, succeeds}}, want: lists{main: words{sigterm}, ephemeral: words{unknown, succeeds}}},
		"second init runs beside main": {node: lists{init: words{succeeds, runs}, main: words{runs}}, want: lists{init: words{succeeds, unknown}, main: words{unknown}}},
		"first init running":           {node: lists{init: words{runs, waits}, main: words{waits}}, want: lists{init: words{unknown, waits}, main: words{waits}}},
		"second init restarts":         {node: lists{init: words{waits, restarts, waits}, main: words{waits}}, want: lists{init: words{unknown, unknown, waits}, main: words{waits}}},
		"first init counts as started": {node: lists{init: words{waits, waits}, main: words{waits}}, want: lists{init: words{unknown, waits}, main: words{waits}}},
		"inits succeeded":              {node: lists{init: words{succeeds, succeeds}, main: words{waits}}, want: lists{init: words{succeeds, succeeds}, main: words{unknown}}},
		"last init running":            {node: lists{init: words{succeeds, runs}, main: words{waits}}, want: lists{init: words{succeeds, unknown}, main: words{waits}}},
		"first init failed":            {node: lists{init: words{sigterm, waits}, main: words{waits}}, want: lists{init: words{sigterm, waits}, main: words{waits}}},
	} {
		for _, phase := range []v1.PodPhase{v1.PodFailed, v1.PodSucceeded} {
			t.Run(name+" "+string(phase), func(t *testing.T) {
				server := running("web")
				server.Status.InitContainerStatuses = statusesFromWords(test.node.init)
				server.Status.ContainerStatuses = statusesFromWords(test.node.main)
				server.Status.EphemeralContainerStatuses = statusesFromWords(test.node.ephemeral)
				server.Spec.InitContainers = containersOf(len(test.node.init))
				pod := server.DeepCopy()
				pod.Status.Phase = phase
				was := pod.DeepCopy()
				got := flush(t, server, pod).pod(t, "web").Status
				require.Equal(t, test.want, lists{
					wordsFromStatuses(t, got.InitContainerStatuses), wordsFromStatuses(t, got.ContainerStatuses), wordsFromStatuses(t, got.EphemeralContainerStatuses),
				})
				require.Equal(t, was, pod, "FlushPod does not modify the pod")
			})
		}
	}
}

// FlushPod writes a pod with a terminal phase whose regular container waits. If the last init container has started (as a
// sidecar) or succeeded, the regular container may have been started, and is written as ended with an unknown exit code.
// Otherwise it still waits.
func TestAWaitingContainerMayHaveStartedOnlyAfterTheLastInitContainer(t *testing.T) {
	for name, test := range map[string]struct {
		inits    []v1.Container // of the spec
		statuses []string       // of the init containers
		want     string         // the status of the regular container
	}{
		"no init status":                  {inits: containersOf(1), want: waits},
		"no status of the last init":      {inits: containersOf(2), statuses: []string{succeeds}, want: waits},
		"the last init, a sidecar, runs":  {inits: sidecarsOf(1), statuses: []string{runs}, want: unknown},
		"the last init, a sidecar, waits": {inits: sidecarsOf(1), statuses: []string{restarts}, want: waits},
	} {
		t.Run(name, func(t *testing.T) {
			pod := running("web")
			pod.Spec.InitContainers = test.inits
			pod.Status.InitContainerStatuses = statusesFromWords(test.statuses)
			pod.Status.Phase, pod.Status.ContainerStatuses = v1.PodFailed, statusesFromWords([]string{waits})
			written := flush(t, running("web"), pod).pod(t, "web").Status
			require.Equal(t, []string{test.want}, wordsFromStatuses(t, written.ContainerStatuses))
		})
	}
}

// FlushPod writes a pod in the phase Running. It writes the container statuses that the node knows only if one of the
// containers has ended. Otherwise the API server keeps the statuses that it has.
func TestContainerStatusesInANonTerminalPhase(t *testing.T) {
	for name, test := range map[string]struct{ server, node, want []string }{
		"one has ended":  {server: []string{runs, runs}, node: []string{sigterm, runs}, want: []string{sigterm, runs}},
		"none has ended": {server: []string{sigterm, runs}, node: []string{runs, runs}, want: []string{sigterm, runs}},
		"no status":      {server: []string{runs}, node: nil, want: []string{runs}},
	} {
		t.Run(name, func(t *testing.T) {
			server, pod := running("web"), ended(running("web"))
			server.Status.ContainerStatuses = statusesFromWords(test.server)
			pod.Status.Phase, pod.Status.ContainerStatuses = v1.PodRunning, statusesFromWords(test.node)
			got := flush(t, server, pod).pod(t, "web").Status
			require.Equal(t, test.want, wordsFromStatuses(t, got.ContainerStatuses))
			require.Equal(t, v1.PodRunning, got.Phase)
		})
	}
}

// FlushPod deletes a pod with a deletion timestamp on the API server, but only if none of its containers may still run:
// otherwise a replacement could start too early. A container whose state is unknown may run.
func TestAPodWhoseContainersMayRunIsNotDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		phase           v1.PodPhase
		init, main      []string // the statuses of the init and of the regular containers
		sidecars, inits int      // how many sidecars and plain init containers the spec has
		ephemeral       bool     // the spec has an ephemeral container
		removed         bool     // FlushPod deletes the pod
	}{
		"failed":                          {phase: v1.PodFailed, main: []string{runs}, removed: true},
		"succeeded":                       {phase: v1.PodSucceeded, main: []string{runs}, removed: true},
		"running, all ended":              {phase: v1.PodRunning, main: []string{sigterm, succeeds}, removed: true},
		"running, one runs":               {phase: v1.PodRunning, main: []string{sigterm, runs}},
		"running, no status":              {phase: v1.PodRunning},
		"running, one without a state":    {phase: v1.PodRunning, main: []string{sigterm, noState}},
		"running, sidecar runs":           {phase: v1.PodRunning, main: []string{sigterm}, init: []string{runs}, sidecars: 1},
		"running, sidecar without status": {phase: v1.PodRunning, main: []string{sigterm}, sidecars: 1},
		"running, init without status":    {phase: v1.PodRunning, main: []string{sigterm}, inits: 1, removed: true},
		"running, no debugger status":     {phase: v1.PodRunning, main: []string{sigterm}, ephemeral: true},
		"unknown phase":                   {phase: v1.PodUnknown},
		"pending, nothing started":        {phase: v1.PodPending, main: []string{waits}, removed: true},
		"pending, no status":              {phase: v1.PodPending, removed: true},
		"pending, an init container runs": {phase: v1.PodPending, init: []string{runs}, inits: 1},
	} {
		t.Run(name, func(t *testing.T) {
			pod := deleted(running("web"))
			pod.Spec = v1.PodSpec{Containers: containersOf(max(1, len(test.main)))}
			pod.Spec.InitContainers = append(sidecarsOf(test.sidecars), containersOf(test.inits)...)
			for i := range pod.Spec.InitContainers {
				pod.Spec.InitContainers[i].Name = fmt.Sprint("init ", i)
			}
			if test.ephemeral {
				pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "debugger"}}}
			}
			pod.Status.Phase = test.phase
			pod.Status.ContainerStatuses = statusesFromWords(test.main)
			for i, word := range test.init {
				pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, statusFromWord(fmt.Sprint("init ", i), word))
			}
			c := flush(t, running("web"), pod)
			require.Equal(t, test.removed, len(c.callsOf("delete")) == 1)
		})
	}
	t.Run("no spec", func(t *testing.T) {
		pod := deleted(running("web"))
		pod.Spec = v1.PodSpec{}
		require.Empty(t, flush(t, running("web"), pod).callsOf("delete"))
	})
}
