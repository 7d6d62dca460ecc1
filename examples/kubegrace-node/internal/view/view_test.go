package view

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// began is when all shutdowns of these tests begin.
var began = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// snapshotAt returns a snapshot of a shutdown, taken some time after the shutdown began.
func snapshotAt(elapsed time.Duration, pods ...Pod) Snapshot {
	return Snapshot{Now: began.Add(elapsed), Began: began, Allowed: 18 * time.Second, Pods: pods}
}

// endingPod returns a pod that was told to stop when the shutdown began, with a grace period of 10 s.
func endingPod(name string, containers ...Container) Pod {
	return Pod{Name: name, State: Ending, Granted: 10, Deadline: began.Add(10 * time.Second), Containers: containers}
}

// gonePod returns a pod whose stop is over and took 3 s.
func gonePod(name string, containers ...Container) Pod {
	return Pod{Name: name, State: Gone, Granted: 10, Took: 3 * time.Second, Containers: containers}
}

// containerIn returns a container whose stop is in this phase, with a preStop hook.
func containerIn(name string, phase lifecycle.Phase) Container {
	return Container{ContainerResult: lifecycle.ContainerResult{Name: name, Phase: phase}, Signal: "SIGTERM", HookText: "sleep of 2s"}
}

// endedContainer returns a container that has taken 2 s to end after its stop signal.
func endedContainer(outcome lifecycle.Outcome) Container {
	c := containerIn("app", lifecycle.PhaseEnded)
	c.Outcome, c.Stopping = outcome, 2*time.Second
	return c
}

// endedContainerWithHook returns a container that has ended in time after this result of its preStop hook.
func endedContainerWithHook(hook lifecycle.HookResult) Container {
	c := endedContainer(lifecycle.OutcomeGraceful)
	c.Hook = hook
	return c
}

// Each change gets one line, and a snapshot without a change gets none. During a shutdown, here of at most 18
// s, a line begins with the time since its beginning and ends with what is left of the 10 s of the pod. The
// end of the pod's only container is not repeated.
func TestChangeLinesOncePerChange(t *testing.T) {
	var out bytes.Buffer
	v := New(&out)
	v.Say("1 of 1 pods run.")
	idle := Snapshot{Now: began, Pods: []Pod{{Name: "shop/web", State: Running}}}
	v.Show(idle)
	v.Show(idle)
	v.Show(snapshotAt(0, Pod{Name: "shop/web", State: Running}))
	v.Show(snapshotAt(time.Second, endingPod("shop/web", containerIn("app", lifecycle.PhaseHook))))
	v.Show(snapshotAt(2*time.Second, endingPod("shop/web", containerIn("app", lifecycle.PhaseHook))))
	stopping := containerIn("app", lifecycle.PhaseStopping)
	stopping.Signal = "SIGQUIT"
	v.Show(snapshotAt(3*time.Second, endingPod("shop/web", stopping)))
	v.Show(snapshotAt(4*time.Second, gonePod("shop/web", endedContainer(lifecycle.OutcomeGraceful))))
	require.Equal(t, `1 of 1 pods run.
shop/web                 runs
Shutting down 1 pod in 1 bucket, the lowest priority first; it may take up to 18s.
    1s  shop/web                 runs its preStop hook: sleep of 2s (9s left)
    3s  shop/web                 got SIGQUIT, is ending (7s left)
    4s  shop/web                 gone after 3s: stopped in time
`, out.String())
}

// If a pod has several containers, each line names the container, and the end of each has a line. The sidecar
// waits until the app has ended.
func TestChangeLinesNameTheContainersOfAPodWithASidecar(t *testing.T) {
	var out bytes.Buffer
	v := New(&out)
	v.Show(snapshotAt(time.Second, endingPod("shop/cart", containerIn("proxy", lifecycle.PhaseWaiting), containerIn("app", lifecycle.PhaseStopping))))
	v.Show(snapshotAt(2*time.Second, endingPod("shop/cart", containerIn("proxy", lifecycle.PhaseStopping), endedContainer(lifecycle.OutcomeGraceful))))
	require.Equal(t, `Shutting down 1 pod in 1 bucket, the lowest priority first; it may take up to 18s.
    1s  shop/cart proxy          waits, a sidecar stops last (9s left)
    1s  shop/cart app            got SIGTERM, is ending (9s left)
    2s  shop/cart proxy          got SIGTERM, is ending (8s left)
    2s  shop/cart app            stopped in time
`, out.String())
}

// For every outcome of a stop and of a hook, row is the line of the pod and sentence is what Finish prints
// below the report. If all went well, there is no sentence. With several containers the worst outcome counts.
// An error of the pod itself ("problem") is only mentioned, and only if all its containers have ended.
func TestEveryOutcome(t *testing.T) {
	for name, test := range map[string]struct {
		pod           Pod
		row, sentence string
	}{
		"in time":                       {gonePod("a", endedContainer(lifecycle.OutcomeGraceful)), "stopped in time", ""},
		"killed":                        {gonePod("a", endedContainer(lifecycle.OutcomeGraceExceeded)), "killed, its time was up", "a: container app did not end on SIGTERM and was killed 2s later, when the 10s of its pod were over."},
		"forced":                        {gonePod("a", failedContainer(lifecycle.OutcomeForced)), "killed, its stop had failed", "a: container app was killed, because its stop failed: broken"},
		"stuck":                         {gonePod("a", failedContainer(lifecycle.OutcomeRuntimeStuck)), "may still run", "a: container app may still run, the container runtime could not stop it: broken"},
		"ended before":                  {gonePod("a", endedContainer(lifecycle.OutcomeNotFound)), "had ended before", ""},
		"left":                          {gonePod("a", endedContainer(lifecycle.OutcomeLeftRunning)), "left running", "a: container app was left running, because the agent stopped."},
		"hook":                          {gonePod("a", endedContainerWithHook(lifecycle.HookResult{Outcome: lifecycle.HookCompleted, Took: 2 * time.Second})), "stopped in time, after a preStop hook of 2s", ""},
		"hook failed":                   {gonePod("a", endedContainerWithHook(lifecycle.HookResult{Outcome: lifecycle.HookFailed, Err: errors.New("broken")})), "stopped in time, its preStop hook failed", "a: container app had a preStop hook (sleep of 2s) that failed: broken"},
		"hook cut":                      {gonePod("a", endedContainerWithHook(lifecycle.HookResult{Outcome: lifecycle.HookCut, Cause: lifecycle.CauseGraceSpent, Took: time.Second})), "stopped in time, its preStop hook was cut off", "a: container app had a preStop hook (sleep of 2s) that was cut off after 1s."},
		"hook ended with its container": {gonePod("a", endedContainerWithHook(lifecycle.HookResult{Outcome: lifecycle.HookCut, Cause: lifecycle.CauseContainerExited})), "stopped in time", ""},
		"hook abandoned":                {gonePod("a", endedContainerWithHook(lifecycle.HookResult{Outcome: lifecycle.HookAbandoned, Took: time.Second})), "its preStop hook was cut off", "was cut off after 1s."},
		"hook left out":                 {gonePod("a", endedContainerWithHook(lifecycle.HookResult{Outcome: lifecycle.HookSkipped})), "its preStop hook had no time, or has run before", ""},
		"worst counts":                  {gonePod("a", endedContainer(lifecycle.OutcomeGraceful), endedContainer(lifecycle.OutcomeGraceExceeded)), "killed, its time was up", "was killed"},
		"problem":                       {podWithProblem(gonePod("a", endedContainer(lifecycle.OutcomeGraceful))), "stopped in time, but with an error", ""},
		"problem once":                  {podWithProblem(gonePod("a", failedContainer(lifecycle.OutcomeRuntimeStuck))), "may still run\n", "could not stop it: broken\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			New(&out).Finish(snapshotAt(5*time.Second, test.pod), api.Report{})
			require.Contains(t, out.String(), test.row)
			require.Contains(t, out.String(), test.sentence)
		})
	}
}

// podWithProblem returns a pod whose sandbox could not be removed.
func podWithProblem(p Pod) Pod {
	p.Problem = "the sandbox is stuck"
	return p
}

// failedContainer returns a container whose stop has failed.
func failedContainer(outcome lifecycle.Outcome) Container {
	c := endedContainer(outcome)
	c.Err = errors.New("broken")
	return c
}

// That the sidecar stopped last is only said if the pod stopped in time: of a pod that was killed it may not
// be true.
func TestStopTextNamesTheSidecarIfItStoppedInTime(t *testing.T) {
	sidecar := endedContainer(lifecycle.OutcomeGraceful)
	sidecar.Sidecar = true
	require.Equal(t, "stopped in time, the sidecar last", gonePod("a", sidecar, endedContainer(lifecycle.OutcomeGraceful)).stopText())
	require.Equal(t, "killed, its time was up", gonePod("a", sidecar, endedContainer(lifecycle.OutcomeGraceExceeded)).stopText())
}

// Writing to a terminal that was closed does not panic and has no consequence, so that the drain goes on.
func TestClosedTerminalIsNoFailure(*testing.T) {
	v := New(closedWriter{})
	v.Say("lost")
	v.Show(snapshotAt(0))
}

// closedWriter is a writer that always fails.
type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, errors.New("closed") }
