package cri_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/containerdtest"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/cri"
	"github.com/kubegrace/kubegrace/lifecycle"
)

const (
	// obedient exits with 7 on TERM and with 8 on QUIT. The shell is the first process of
	// its container, to which the kernel delivers no signal without a handler.
	obedient = `trap 'exit 7' TERM; trap 'exit 8' QUIT; touch /tmp/ready; while :; do sleep 1000 & wait; done`
	// stubborn ignores TERM and QUIT.
	stubborn = `trap '' TERM QUIT; touch /tmp/ready; while :; do sleep 1000; done`
	// untilReady exits when the script of the container has set its traps.
	untilReady = `while ! [ -e /tmp/ready ]; do sleep 0.01; done`
)

// containerd is one real containerd that several tests share, each with pods of its own.
type containerd struct {
	server  *containerdtest.Server
	runtime *cri.Runtime
}

func newContainerd(t *testing.T, build containerdtest.Build) *containerd {
	t.Helper()
	server := build.Start(t,
		containerdtest.Image{Name: "obedient:1", Command: []string{"/bin/sh", "-c", obedient}},
		containerdtest.Image{Name: "quits:1", Command: []string{"/bin/sh", "-c", obedient}, StopSignal: "SIGQUIT"},
		containerdtest.Image{Name: "stubborn:1", Command: []string{"/bin/sh", "-c", stubborn}})
	return &containerd{server: server, runtime: connect(t, server, cri.Options{})}
}

func connect(t *testing.T, server *containerdtest.Server, options cri.Options) *cri.Runtime {
	t.Helper()
	runtime, err := cri.New(t.Context(), server.Endpoint(), options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, runtime.Close()) })
	return runtime
}

// realPod returns a pod in the default namespace, with the UID name-uid.
func realPod(name string, containers ...v1.Container) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name + "-uid")},
		Spec:       v1.PodSpec{Containers: containers},
	}
}

// startReady starts a pod and waits until its first container has set its traps.
func (c *containerd) startReady(t *testing.T, pod *v1.Pod) []lifecycle.Container {
	t.Helper()
	containers, err := c.runtime.StartPod(t.Context(), pod)
	require.NoError(t, err)
	_, err = c.runtime.RunInContainer(t.Context(), containers[0].ID, []string{"/bin/sh", "-c", untilReady}, waitAtMost)
	require.NoError(t, err)
	return containers
}

func (c *containerd) status(t *testing.T, id string) *runtimeapi.ContainerStatus {
	t.Helper()
	response, err := c.server.Runtime().ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
	require.NoError(t, err)
	return response.GetStatus()
}

func TestContainerd(t *testing.T) { containerdtest.Each(t, testContainerd) }

func testContainerd(t *testing.T, build containerdtest.Build) {
	c := newContainerd(t, build)
	for name, test := range map[string]func(*testing.T){
		"stop signal is handled":             c.testStopSignalIsHandled,
		"stop signal is ignored":             c.testStopSignalIsIgnored,
		"stop signal of the image":           c.testStopSignalOfTheImage,
		"stop is shortened":                  c.testStopIsShortened,
		"exec":                               c.testExec,
		"exec is cancelled":                  c.testExecIsCancelled,
		"exit is noticed":                    c.testExitIsNoticed,
		"container has exited or is unknown": c.testContainerHasExitedOrIsUnknown,
		"pod is adopted":                     c.testPodIsAdopted,
		"init containers and sidecars":       c.testInitContainersAndSidecars,
		"manifest is passed on":              c.testManifestIsPassedOn,
		"start fails":                        c.testStartFails,
		"image is missing":                   c.testImageIsMissing,
		"pod is removed":                     c.testPodIsRemoved,
		"container is restarted":             c.testContainerIsRestarted,
		"pod of another manifest is adopted": c.testPodOfAnotherManifestIsAdopted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func (c *containerd) testStopSignalIsHandled(t *testing.T) {
	containers := c.startReady(t, realPod("handled", v1.Container{Name: "main", Image: "obedient:1"}))
	require.NoError(t, c.runtime.StopContainer(t.Context(), containers[0].ID, 60))
	status := c.status(t, containers[0].ID)
	require.Equal(t, runtimeapi.ContainerState_CONTAINER_EXITED, status.GetState())
	require.EqualValues(t, 7, status.GetExitCode(), "the trap of TERM")
}

func (c *containerd) testStopSignalIsIgnored(t *testing.T) {
	containers := c.startReady(t, realPod("ignored", v1.Container{Name: "main", Image: "stubborn:1"}))
	began := time.Now()
	require.NoError(t, c.runtime.StopContainer(t.Context(), containers[0].ID, 2))
	require.GreaterOrEqual(t, time.Since(began), 2*time.Second, "its grace")
	require.EqualValues(t, 128+9, c.status(t, containers[0].ID).GetExitCode())
}

func (c *containerd) testStopSignalOfTheImage(t *testing.T) {
	containers := c.startReady(t, realPod("quits", v1.Container{Name: "main", Image: "quits:1"}))
	require.NoError(t, c.runtime.StopContainer(t.Context(), containers[0].ID, 60))
	require.EqualValues(t, 8, c.status(t, containers[0].ID).GetExitCode(), "the trap of QUIT")
}

func (c *containerd) testStopIsShortened(t *testing.T) {
	containers := c.startReady(t, realPod("shortened", v1.Container{Name: "main", Image: "stubborn:1"}))
	stopped := make(chan error, 1)
	go func() { stopped <- c.runtime.StopContainer(t.Context(), containers[0].ID, 600) }()
	require.NoError(t, c.runtime.StopContainer(t.Context(), containers[0].ID, 0))
	require.NoError(t, <-stopped)
}

func (c *containerd) testExec(t *testing.T) {
	containers := c.startReady(t, realPod("exec", v1.Container{Name: "main", Image: "obedient:1"}))
	output, err := c.runtime.RunInContainer(t.Context(), containers[0].ID, []string{"/bin/sh", "-c", "echo out; echo err >&2; exit 3"}, 0)
	require.Equal(t, "out\nerr\n", string(output))
	require.EqualError(t, err, "command /bin/sh exited with 3")
}

// testExecIsCancelled cancels only when the command runs: containerd 1.6 can miss the end
// of a call while it starts the call's command.
func (c *containerd) testExecIsCancelled(t *testing.T) {
	containers := c.startReady(t, realPod("cancelled", v1.Container{Name: "main", Image: "obedient:1"}))
	script := func(ctx context.Context, script string) (string, error) {
		output, err := c.runtime.RunInContainer(ctx, containers[0].ID, []string{"/bin/sh", "-c", script}, waitAtMost)
		return string(output), err
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := script(ctx, "touch /tmp/started; sleep 4; touch /tmp/survived")
		done <- err
	}()
	_, err := script(t.Context(), "while ! [ -e /tmp/started ]; do sleep 0.01; done")
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	output, err := script(t.Context(), "sleep 5; ls /tmp")
	require.NoError(t, err)
	require.Equal(t, "ready\nstarted\n", output, "the command went on without its caller")
}

// testExitIsNoticed measures how long after its end an exit is noticed. It takes the
// shortest of five times, because a busy machine delays some.
func (c *containerd) testExitIsNoticed(t *testing.T) {
	best := time.Hour
	for i := range 5 {
		name := "exit-" + string(rune('a'+i))
		containers := c.startReady(t, realPod(name, v1.Container{Name: "main", Image: "obedient:1"}))
		exited := c.runtime.Exited(containers[0].ID)
		requireRunning(t, exited)
		_, err := c.server.Runtime().StopContainer(t.Context(), &runtimeapi.StopContainerRequest{ContainerId: containers[0].ID, Timeout: 60})
		require.NoError(t, err)
		awaitExit(t, exited)
		noticed := time.Now()
		best = min(best, noticed.Sub(time.Unix(0, c.status(t, containers[0].ID).GetFinishedAt())))
	}
	require.LessOrEqual(t, best, 200*time.Millisecond)
}

func (c *containerd) testContainerHasExitedOrIsUnknown(t *testing.T) {
	containers := c.startReady(t, realPod("gone", v1.Container{Name: "main", Image: "obedient:1"}))
	id := containers[0].ID
	require.NoError(t, c.runtime.StopContainer(t.Context(), id, 60))
	require.NoError(t, c.runtime.StopContainer(t.Context(), id, 60), "a container that had exited before is no error")
	_, err := c.runtime.RunInContainer(t.Context(), id, []string{"/bin/true"}, 0)
	require.ErrorContains(t, err, "CONTAINER_EXITED")
	awaitExit(t, c.runtime.Exited(id))

	c.requireUnknown(t, "unknown")
	_, err = c.runtime.RunInContainer(t.Context(), "unknown", []string{"/bin/true"}, 0)
	require.ErrorIs(t, err, lifecycle.ErrContainerNotFound)
	awaitExit(t, c.runtime.Exited("unknown"))
}

// requireUnknown checks that the runtime does not know a container, and that
// StopContainer accepts this: containerd 1.6 answers with NotFound, 2.2 with no error.
func (c *containerd) requireUnknown(t *testing.T, id string) {
	t.Helper()
	_, err := c.runtime.ContainerStatus(t.Context(), id)
	require.ErrorIs(t, err, lifecycle.ErrContainerNotFound)
	if err := c.runtime.StopContainer(t.Context(), id, 1); err != nil {
		require.ErrorIs(t, err, lifecycle.ErrContainerNotFound)
	}
}
