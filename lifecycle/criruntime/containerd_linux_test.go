package criruntime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
)

const (
	// obedient exits with 7 on TERM. It needs a trap, because the kernel delivers to the first process of a container
	// only signals that it handles.
	obedient = `trap 'exit 7' TERM; touch /tmp/ready; while :; do sleep 1000 & wait; done`
	// stubborn keeps running after TERM.
	stubborn = `trap 'touch /tmp/signalled' TERM; touch /tmp/ready; while :; do sleep 1000 & wait; done`
	// untilReady, run in a container, exits once the container's script has set its traps.
	untilReady = `while ! [ -e /tmp/ready ]; do sleep 0.01; done`
	// untilSignalled, run in the container of stubborn, exits once stubborn has received TERM.
	untilSignalled = `while ! [ -e /tmp/signalled ]; do sleep 0.01; done`
)

// containerd is a real containerd that several tests share, each with its own pods.
type containerd struct {
	kubelet

	server  *containerdtest.Server
	runtime *criruntime.Runtime
}

// newContainerd starts a containerd with the images that the tests use.
func newContainerd(t *testing.T, build containerdtest.Build) *containerd {
	t.Helper()
	server := build.Start(t,
		containerdtest.Image{Name: "obedient:1", Command: []string{"/bin/sh", "-c", obedient}},
		containerdtest.Image{Name: "stubborn:1", Command: []string{"/bin/sh", "-c", stubborn}})
	return &containerd{kubelet{server.Runtime()}, server, dial(t, server.Endpoint(), criruntime.Options{})}
}

// startReady starts a pod with one container, and waits until its script has set its traps.
func (c *containerd) startReady(t *testing.T, name, image string, edit ...func(*v1.Pod)) (pod *v1.Pod, id string) {
	t.Helper()
	pod = podWithGrace(name, 30, append(edit, func(pod *v1.Pod) { pod.Spec.Containers[0].Image = image })...)
	_, ids := c.runPod(t, pod)
	c.awaitReady(t, ids[0])
	return pod, ids[0]
}

// awaitReady waits until the script of a container has set its traps, so that a signal does not kill it
// before.
func (c *containerd) awaitReady(t *testing.T, id string) {
	t.Helper()
	_, err := c.runtime.RunInContainer(t.Context(), id, []string{"/bin/sh", "-c", untilReady}, waitAtMost)
	require.NoError(t, err)
}

// status reads the status of a container from containerd itself.
func (c *containerd) status(t *testing.T, id string) *runtimeapi.ContainerStatus {
	t.Helper()
	response, err := c.server.Runtime().ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
	require.NoError(t, err)
	return response.GetStatus()
}

// Runtime works with a real containerd of each version: Debian's, 2.3 and 2.4. For each version, testContainerd runs all
// cases.
func TestContainerd(t *testing.T) { containerdtest.Each(t, testContainerd) }

// testContainerd runs all cases with one version of containerd. They share one containerd and run in parallel, each with
// its own pods.
func testContainerd(t *testing.T, build containerdtest.Build) {
	c := newContainerd(t, build)
	for name, test := range map[string]func(*testing.T){
		"stop is shortened":                  c.testStopIsShortened,
		"exec":                               c.testExec,
		"exec is cancelled":                  c.testExecIsCancelled,
		"exit is detected":                   c.testExitIsDetected,
		"container has exited or is unknown": c.testContainerHasExitedOrIsUnknown,
		"pods are listed":                    c.testPodsAreListed,
		"containers are listed":              c.testContainersAreListed,
		"sandbox is stopped":                 c.testSandboxIsStopped,
		"container was never started":        c.testContainerWasNeverStarted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// A StopContainer call with a timeout of 600 s is in progress: the container has received TERM, and keeps running. A second
// call with timeout 0 kills it, and both calls return: this is how the terminator shortens a stop.
func (c *containerd) testStopIsShortened(t *testing.T) {
	_, id := c.startReady(t, "shortened", "stubborn:1")
	stopped := make(chan error, 1)
	go func() { stopped <- c.runtime.StopContainer(t.Context(), id, 600) }()
	_, err := c.runtime.RunInContainer(t.Context(), id, []string{"/bin/sh", "-c", untilSignalled}, waitAtMost)
	require.NoError(t, err)
	require.NoError(t, c.runtime.StopContainer(t.Context(), id, 0))
	require.NoError(t, <-stopped)
}

// The output of a command has stdout and stderr, and its exit code becomes an error.
func (c *containerd) testExec(t *testing.T) {
	_, id := c.startReady(t, "exec", "obedient:1")
	output, err := c.runtime.RunInContainer(t.Context(), id, []string{"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}, noTimeout)
	require.Equal(t, "out\nerr\n", string(output))
	require.EqualError(t, err, "command /bin/sh exited with 3")
}

// A command whose context is cancelled is killed, once containerd has started it: the command does not live to write
// the file "survived" 4 s later. Its output does not fit into the pipes that carry it, so the command blocks until
// containerd reads them. containerd does that after the start, so the file "started" shows that the start is over.
func (c *containerd) testExecIsCancelled(t *testing.T) {
	_, id := c.startReady(t, "cancelled", "obedient:1")
	shell := func(ctx context.Context, script string) (string, error) {
		output, err := c.runtime.RunInContainer(ctx, id, []string{"/bin/sh", "-c", script}, waitAtMost)
		return string(output), err
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := shell(ctx, "head -c 1000000 /dev/zero; touch /tmp/started; sleep 4; touch /tmp/survived")
		done <- err
	}()
	_, err := shell(t.Context(), "while ! [ -e /tmp/started ]; do sleep 0.01; done")
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	output, err := shell(t.Context(), "sleep 5; ls /tmp")
	require.NoError(t, err)
	require.Equal(t, "ready\nstarted\n", output, "without the file survived")
}

// An exit is detected little more than 1 s after the container has finished, because the containers are listed every second.
// The test takes the shortest of five delays, because a busy machine may delay some.
func (c *containerd) testExitIsDetected(t *testing.T) {
	best := time.Hour
	for i := range 5 {
		_, id := c.startReady(t, fmt.Sprint("exit-", i), "obedient:1")
		exited := c.runtime.Exited(id)
		requireNoExit(t, exited)
		_, err := c.server.Runtime().StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: 60})
		require.NoError(t, err)
		awaitExit(t, exited)
		detected := time.Now()
		best = min(best, detected.Sub(time.Unix(0, c.status(t, id).GetFinishedAt())))
	}
	require.LessOrEqual(t, best, 1200*time.Millisecond)
}

// For a container that has exited, StopContainer succeeds and RunInContainer fails. For one that containerd does not know,
// RunInContainer returns ErrContainerNotFound. In both cases the channel that Exited returns is closed.
func (c *containerd) testContainerHasExitedOrIsUnknown(t *testing.T) {
	_, id := c.startReady(t, "gone", "obedient:1")
	require.NoError(t, c.runtime.StopContainer(t.Context(), id, 60))
	require.NoError(t, c.runtime.StopContainer(t.Context(), id, 60), "stopping an exited container is no error")
	_, err := c.runtime.RunInContainer(t.Context(), id, []string{"/bin/true"}, noTimeout)
	require.ErrorContains(t, err, "CONTAINER_EXITED")
	awaitExit(t, c.runtime.Exited(id))

	c.requireUnknown(t, "unknown")
	_, err = c.runtime.RunInContainer(t.Context(), "unknown", []string{"/bin/true"}, noTimeout)
	require.ErrorIs(t, err, lifecycle.ErrContainerNotFound)
	awaitExit(t, c.runtime.Exited("unknown"))
}

// requireUnknown checks that StopContainer accepts an unknown container: containerd 1.6 answers NotFound,
// 2.3 no error.
func (c *containerd) requireUnknown(t *testing.T, id string) {
	t.Helper()
	if err := c.runtime.StopContainer(t.Context(), id, 1); err != nil {
		require.ErrorIs(t, err, lifecycle.ErrContainerNotFound)
	}
}

// While a kubelet's pod runs, it is listed with its grace period and hook. When it has ended, it is listed with the exit code
// 7, with which the script of its container exits on TERM.
func (c *containerd) testPodsAreListed(t *testing.T) {
	hook := v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"/bin/true"}}}
	pod, id := c.startReady(t, "listed", "obedient:1", withHook(hook))
	got := c.listed(t, pod)
	require.Equal(t, "listed", got.Name)
	require.Equal(t, pod.UID, got.UID)
	require.True(t, got.Spec.HostNetwork)
	require.EqualValues(t, 30, *got.Spec.TerminationGracePeriodSeconds)
	require.Equal(t, pod.Spec.Containers[0].Lifecycle, got.Spec.Containers[0].Lifecycle)
	require.Equal(t, "containerd://"+id, got.Status.ContainerStatuses[0].ContainerID)

	require.NoError(t, c.runtime.StopContainer(t.Context(), id, 60))
	ended := c.listed(t, pod).Status.ContainerStatuses[0].State.Terminated
	require.EqualValues(t, 7, ended.ExitCode)
	require.False(t, ended.FinishedAt.IsZero())
}

// A running container is listed until it has been stopped. Its pod is found by namespace and name if it has no UID. Only
// containerd 2.4 streams lists (KEP-5825).
func (c *containerd) testContainersAreListed(t *testing.T) {
	pod, id := c.startReady(t, "running", "obedient:1")
	want := []lifecycle.Container{{Name: "running", ID: id, Began: time.Unix(0, c.status(t, id).GetCreatedAt())}}
	for _, uid := range []types.UID{pod.UID, ""} {
		listed, err := c.runtime.Running(t.Context(), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "running", UID: uid}})
		require.NoError(t, err)
		require.Equal(t, want, listed)
	}
	version, err := c.client.Version(t.Context(), &runtimeapi.VersionRequest{})
	require.NoError(t, err)
	require.Equal(t, strings.Contains(version.GetRuntimeVersion(), "2.4"), c.runtime.UsesStreaming())

	require.NoError(t, c.runtime.StopContainer(t.Context(), id, 60))
	require.Empty(t, runningIDs(t, c.runtime, pod))
}

// listed returns the pod from the list of Runtime.Pods, or nil.
func (c *containerd) listed(t *testing.T, pod *v1.Pod) *v1.Pod {
	t.Helper()
	pods, err := c.runtime.Pods(t.Context())
	require.NoError(t, err)
	for _, p := range pods {
		if p.UID == pod.UID {
			return p
		}
	}
	return nil
}

// StopPodSandbox kills a running container at once, without a grace period, so that the exit code is 128 + 9 (SIGKILL). A
// second call succeeds.
func (c *containerd) testSandboxIsStopped(t *testing.T) {
	pod, id := c.startReady(t, "sandboxed", "stubborn:1")
	require.NoError(t, c.runtime.StopPodSandbox(t.Context(), pod))
	require.EqualValues(t, 128+9, c.status(t, id).GetExitCode(), "the runtime grants no grace period")
	require.Nil(t, c.listed(t, pod))
	require.EqualValues(t, 128+9, c.runtime.PodStatus(t.Context(), pod).ContainerStatuses[0].State.Terminated.ExitCode)
	require.NoError(t, c.runtime.StopPodSandbox(t.Context(), pod))
}

// A container that was created and never started is listed as running, because it could still be started. StopContainer
// removes it.
func (c *containerd) testContainerWasNeverStarted(t *testing.T) {
	pod := podWithGrace("created", 30, func(pod *v1.Pod) { pod.Spec.Containers[0].Image = "obedient:1" })
	id := c.create(t, pod, &pod.Spec.Containers[0], c.runSandbox(t, pod), firstRun)
	require.Equal(t, v1.PodPending, c.listed(t, pod).Status.Phase)
	require.Equal(t, []string{id}, runningIDs(t, c.runtime, pod), "a created container could still be started")
	exited := c.runtime.Exited(id)
	require.NoError(t, c.runtime.StopContainer(t.Context(), id, 30))
	awaitExit(t, exited)
	c.requireUnknown(t, id)
	require.Empty(t, runningIDs(t, c.runtime, pod))
}
