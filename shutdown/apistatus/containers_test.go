package apistatus_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// The tests write the status of a container as one of these words.
const (
	waits     = "waits"
	runs      = "runs"
	restarts  = "restarts" // waits, after an earlier run
	succeeds  = "exit 0"
	interrupt = "exit 143"
	unknown   = "unknown 137" // what the kubelet writes if it does not know the exit code
	nothing   = "nothing"     // no state at all
)

// statusFromWord returns the status of a container from a word.
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
	case interrupt:
		status.State.Terminated = exit(143)
	}
	if word == restarts {
		status.LastTerminationState.Terminated = exit(1)
	}
	return status
}

func statusesFromWords(words []string) []v1.ContainerStatus {
	var all []v1.ContainerStatus
	for i, word := range words {
		all = append(all, statusFromWord(strconv.Itoa(i), word))
	}
	return all
}

// wordsFromStatuses returns the words of statuses.
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

func containersOf(n int, policy *v1.ContainerRestartPolicy) []v1.Container {
	var all []v1.Container
	for i := range n {
		all = append(all, v1.Container{Name: strconv.Itoa(i), RestartPolicy: policy})
	}
	return all
}

// Containers with an unknown exit code are terminated; containers that were never started
// are waiting.
func TestContainersOfAPodThatHasEnded(t *testing.T) {
	type lists struct{ init, main, ephemeral []string }
	for name, test := range map[string]struct{ told, want lists }{
		"all run":               {lists{nil, []string{runs, runs}, nil}, lists{nil, []string{unknown, unknown}, nil}},
		"exit codes were told":  {lists{nil, []string{interrupt, runs, succeeds}, nil}, lists{nil, []string{interrupt, unknown, succeeds}, nil}},
		"waiting":               {lists{nil, []string{waits, restarts, nothing}, nil}, lists{nil, []string{unknown, unknown, unknown}, nil}},
		"ephemeral":             {lists{nil, []string{interrupt}, []string{runs, succeeds}}, lists{nil, []string{interrupt}, []string{unknown, succeeds}}},
		"sidecars":              {lists{[]string{succeeds, runs}, []string{runs}, nil}, lists{[]string{succeeds, unknown}, []string{unknown}, nil}},
		"the first init runs":   {lists{[]string{runs, waits}, []string{waits}, nil}, lists{[]string{unknown, waits}, []string{waits}, nil}},
		"an init was started":   {lists{[]string{waits, restarts, waits}, []string{waits}, nil}, lists{[]string{unknown, unknown, waits}, []string{waits}, nil}},
		"nothing was started":   {lists{[]string{waits, waits}, []string{waits}, nil}, lists{[]string{unknown, waits}, []string{waits}, nil}},
		"the inits are through": {lists{[]string{succeeds, succeeds}, []string{waits}, nil}, lists{[]string{succeeds, succeeds}, []string{unknown}, nil}},
		"the last init runs":    {lists{[]string{succeeds, runs}, []string{waits}, nil}, lists{[]string{succeeds, unknown}, []string{waits}, nil}},
		"an init failed":        {lists{[]string{interrupt, waits}, []string{waits}, nil}, lists{[]string{interrupt, waits}, []string{waits}, nil}},
	} {
		for _, phase := range []v1.PodPhase{v1.PodFailed, v1.PodSucceeded} {
			t.Run(name+" "+string(phase), func(t *testing.T) {
				server := running("web")
				server.Status.InitContainerStatuses = statusesFromWords(test.told.init)
				server.Status.ContainerStatuses = statusesFromWords(test.told.main)
				server.Status.EphemeralContainerStatuses = statusesFromWords(test.told.ephemeral)
				server.Spec.InitContainers = containersOf(len(test.told.init), nil)
				pod := server.DeepCopy()
				pod.Status.Phase = phase
				was := pod.DeepCopy()
				got := flush(t, server, pod).pod(t, "web").Status
				require.Equal(t, test.want, lists{
					wordsFromStatuses(t, got.InitContainerStatuses), wordsFromStatuses(t, got.ContainerStatuses), wordsFromStatuses(t, got.EphemeralContainerStatuses),
				})
				require.Equal(t, was, pod)
			})
		}
	}
	for name, test := range map[string]struct {
		inits []v1.Container
		told  []string
		want  string
	}{
		"of no init container is anything told":  {containersOf(1, nil), nil, waits},
		"of the last one nothing is told":        {containersOf(2, nil), []string{succeeds}, waits},
		"a sidecar is the last one, and is up":   {containersOf(1, ptr.To(v1.ContainerRestartPolicyAlways)), []string{runs}, unknown},
		"a sidecar is the last one, and was not": {containersOf(1, ptr.To(v1.ContainerRestartPolicyAlways)), []string{restarts}, waits},
	} {
		t.Run(name, func(t *testing.T) {
			pod := running("web")
			pod.Spec.InitContainers = test.inits
			pod.Status.InitContainerStatuses = statusesFromWords(test.told)
			pod.Status.Phase, pod.Status.ContainerStatuses = v1.PodFailed, statusesFromWords([]string{waits})
			require.Equal(t, []string{test.want}, wordsFromStatuses(t, flush(t, running("web"), pod).pod(t, "web").Status.ContainerStatuses))
		})
	}
}

// The container statuses of a pod that is not made terminal are written once a container
// has ended.
func TestContainersOfAPodThatIsLeft(t *testing.T) {
	for name, test := range map[string]struct{ server, node, want []string }{
		"one has ended":   {[]string{runs, runs}, []string{interrupt, runs}, []string{interrupt, runs}},
		"none has ended":  {[]string{interrupt, runs}, []string{runs, runs}, []string{interrupt, runs}},
		"nothing is told": {[]string{runs}, nil, []string{runs}},
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

func TestAPodWhoseContainersMayRunIsNotDeleted(t *testing.T) {
	always := ptr.To(v1.ContainerRestartPolicyAlways)
	for name, test := range map[string]struct {
		phase           v1.PodPhase
		init, main      []string
		sidecars, inits int // of the spec
		ephemeral       bool
		removed         bool
	}{
		"failed":                          {phase: v1.PodFailed, main: []string{runs}, removed: true},
		"succeeded":                       {phase: v1.PodSucceeded, main: []string{runs}, removed: true},
		"left, all have ended":            {phase: v1.PodRunning, main: []string{interrupt, succeeds}, removed: true},
		"left, one runs":                  {phase: v1.PodRunning, main: []string{interrupt, runs}},
		"left, nothing is told":           {phase: v1.PodRunning},
		"left, one is not told":           {phase: v1.PodRunning, main: []string{interrupt, nothing}},
		"left, its sidecar runs":          {phase: v1.PodRunning, main: []string{interrupt}, init: []string{runs}, sidecars: 1},
		"left, its sidecar is not told":   {phase: v1.PodRunning, main: []string{interrupt}, sidecars: 1},
		"left, its init is not told":      {phase: v1.PodRunning, main: []string{interrupt}, inits: 1, removed: true},
		"left, its debugger is not told":  {phase: v1.PodRunning, main: []string{interrupt}, ephemeral: true},
		"of a phase that is not known":    {phase: v1.PodUnknown},
		"pending, nothing was started":    {phase: v1.PodPending, main: []string{waits}, removed: true},
		"pending, nothing is told":        {phase: v1.PodPending, removed: true},
		"pending, an init container runs": {phase: v1.PodPending, init: []string{runs}, inits: 1},
	} {
		t.Run(name, func(t *testing.T) {
			pod := deleted(running("web"))
			pod.Spec = v1.PodSpec{Containers: containersOf(max(1, len(test.main)), nil)}
			pod.Spec.InitContainers = append(containersOf(test.sidecars, always), containersOf(test.inits, nil)...)
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
			require.Equal(t, test.removed, len(c.all("delete")) == 1)
		})
	}
	t.Run("handed in without a spec", func(t *testing.T) {
		pod := deleted(running("web"))
		pod.Spec = v1.PodSpec{}
		require.Empty(t, flush(t, running("web"), pod).all("delete"))
	})
}
