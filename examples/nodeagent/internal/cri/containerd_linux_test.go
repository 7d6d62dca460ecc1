package cri_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/cri"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
)

const (
	// obedient exits with 7 on TERM and with 8 on QUIT. The shell is the first process of
	// its container, to which the kernel delivers no signal without a handler.
	obedient = `trap 'exit 7' TERM; trap 'exit 8' QUIT; touch /tmp/ready; while :; do sleep 1000 & wait; done`
	// stubborn ignores TERM and QUIT.
	stubborn = `trap '' TERM QUIT; touch /tmp/ready; while :; do sleep 1000; done`
	// untilReady exits when the script of the container has set its traps.
	untilReady = `while ! [ -e /tmp/ready ]; do sleep 0.01; done`

	waitAtMost = 20 * time.Second
	pollEvery  = 5 * time.Millisecond
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

// The stop signal of the pod's spec takes precedence over that of the image. Before
// version 2.4 containerd accepts it without an error and sends that of the image.
func TestContainerdSendsTheStopSignalOfThePod(t *testing.T) {
	for name, c := range map[string]struct {
		build func(*testing.T) containerdtest.Build
		code  int32
	}{
		"containerd of PATH": {func(*testing.T) containerdtest.Build { return containerdtest.Build{} }, 7},
		"containerd 2.2":     {func(t *testing.T) containerdtest.Build { return containerdtest.V22(t) }, 7},
		"containerd 2.4":     {func(t *testing.T) containerdtest.Build { return containerdtest.V24(t) }, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared := newContainerd(t, c.build(t))
			pod := realPod("signalled", v1.Container{Name: "main", Image: "obedient:1", Lifecycle: &v1.Lifecycle{StopSignal: ptr.To(v1.SIGQUIT)}})
			pod.Spec.OS = &v1.PodOS{Name: v1.Linux}
			containers := shared.startReady(t, pod)
			require.NoError(t, shared.runtime.StopContainer(t.Context(), containers[0].ID, 60))
			require.Equal(t, c.code, shared.status(t, containers[0].ID).GetExitCode(), "7 is the trap of TERM, 8 that of QUIT")
		})
	}
}
