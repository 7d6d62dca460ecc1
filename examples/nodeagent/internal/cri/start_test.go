package cri_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/cri"
	"github.com/kubegrace/kubegrace/lifecycle"
)

func TestStartPodStartsInOrder(t *testing.T) {
	s := newStub()
	s.exitCodes = map[string]int32{"migrate": 0}
	runtime := s.connect(t, cri.Options{})

	containers, err := runtime.StartPod(t.Context(), webPod())
	require.NoError(t, err)
	require.Equal(t, []lifecycle.Container{{Name: "proxy", ID: "proxy-1"}, {Name: "server", ID: "server-2"}, {Name: "cache", ID: "cache-3"}}, containers)

	var started []string
	for _, request := range requests[*runtimeapi.StartContainerRequest](s) {
		started = append(started, request.GetContainerId())
	}
	require.Equal(t, []string{"migrate-0", "proxy-1", "server-2", "cache-3"}, started)
}

func TestStartPodAwaitsAPlainInitContainer(t *testing.T) {
	s := newStub()
	runtime := s.connect(t, cri.Options{})
	done := make(chan error)
	go func() {
		_, err := runtime.StartPod(t.Context(), webPod())
		done <- err
	}()
	require.Eventually(t, func() bool { return len(s.callsOf("StartContainer")) == 1 }, waitAtMost, pollEvery)
	before := len(s.callsOf("ListContainers"))
	require.Eventually(t, func() bool { return len(s.callsOf("ListContainers")) > before+2 }, waitAtMost, pollEvery)
	require.Len(t, s.callsOf("StartContainer"), 1, "what follows an init container starts after its exit")

	s.exit("migrate-0", 0)
	require.NoError(t, <-done)
	require.Len(t, s.callsOf("StartContainer"), 4)
}

func TestStartPodDescribesThePodAsTheKubeletDoes(t *testing.T) {
	s := newStub()
	s.exitCodes = map[string]int32{"migrate": 0}
	runtime := s.connect(t, cri.Options{LogDirectory: "/var/log/pods"})
	_, err := runtime.StartPod(t.Context(), webPod())
	require.NoError(t, err)

	namespaces := &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE, Pid: runtimeapi.NamespaceMode_CONTAINER, Ipc: runtimeapi.NamespaceMode_POD}
	sandbox := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: "web", Namespace: "shop", Uid: "web-1"},
		LogDirectory: "/var/log/pods/shop_web_web-1",
		Labels: map[string]string{
			"app":                         "web",
			"io.kubernetes.pod.name":      "web",
			"io.kubernetes.pod.namespace": "shop",
			"io.kubernetes.pod.uid":       "web-1",
		},
		Annotations: map[string]string{"team": "sales"},
		Linux:       &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: namespaces}},
	}
	equalProto(t, sandbox, requests[*runtimeapi.RunPodSandboxRequest](s)[0].GetConfig())

	server := requests[*runtimeapi.CreateContainerRequest](s)[2]
	require.Equal(t, "sandbox-0", server.GetPodSandboxId())
	equalProto(t, sandbox, server.GetSandboxConfig())
	equalProto(t, &runtimeapi.ContainerConfig{
		Metadata:   &runtimeapi.ContainerMetadata{Name: "server"},
		Image:      &runtimeapi.ImageSpec{Image: "nginx:1.16.1", UserSpecifiedImage: "nginx:1.16.1"},
		Command:    []string{"/bin/server"},
		Args:       []string{"--port", "80"},
		WorkingDir: "/srv",
		Envs:       []*runtimeapi.KeyValue{{Key: "MODE", Value: []byte("fast")}, {Key: "EMPTY"}},
		Labels: map[string]string{
			"io.kubernetes.container.name": "server",
			"io.kubernetes.pod.name":       "web",
			"io.kubernetes.pod.namespace":  "shop",
			"io.kubernetes.pod.uid":        "web-1",
		},
		LogPath: "server/0.log",
		Linux:   &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{NamespaceOptions: namespaces}},
	}, server.GetConfig())
}

func TestStartPodAsksForNoLogsWithoutADirectory(t *testing.T) {
	s := newStub()
	runtime := s.connect(t, cri.Options{})
	_, err := runtime.StartPod(t.Context(), onePod(nil))
	require.NoError(t, err)
	require.Empty(t, requests[*runtimeapi.RunPodSandboxRequest](s)[0].GetConfig().GetLogDirectory())
	require.Empty(t, requests[*runtimeapi.CreateContainerRequest](s)[0].GetConfig().GetLogPath())
}

func equalProto(t *testing.T, want, got proto.Message) {
	t.Helper()
	require.Truef(t, proto.Equal(want, got), "want %v\n got %v", want, got)
}

func TestStartPodRefusesBeforeAnythingIsMade(t *testing.T) {
	field := v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{FieldPath: "metadata.name"}}
	for name, c := range map[string]struct {
		edit func(*v1.Container)
		want string
	}{
		"volumeMounts": {
			func(c *v1.Container) { c.VolumeMounts = []v1.VolumeMount{{Name: "data"}} },
			`pod shop/one: spec.containers[0].volumeMounts[0]: Forbidden: is not supported with --runtime=cri`,
		},
		"volumeDevices": {
			func(c *v1.Container) { c.VolumeDevices = []v1.VolumeDevice{{Name: "disk"}} },
			`pod shop/one: spec.containers[0].volumeDevices[0]: Forbidden: is not supported with --runtime=cri`,
		},
		"envFrom": {
			func(c *v1.Container) { c.EnvFrom = []v1.EnvFromSource{{}} },
			`pod shop/one: spec.containers[0].envFrom[0]: Forbidden: is not supported with --runtime=cri`,
		},
		"valueFrom": {
			func(c *v1.Container) { c.Env = []v1.EnvVar{{Name: "POD", ValueFrom: &field}} },
			`pod shop/one: spec.containers[0].env[0].valueFrom: Forbidden: is not supported with --runtime=cri`,
		},
		"securityContext": {
			func(c *v1.Container) { c.SecurityContext = &v1.SecurityContext{} },
			`pod shop/one: spec.containers[0].securityContext: Forbidden: is not supported with --runtime=cri`,
		},
		"stop signal": {
			withStopSignal("SIGNOTHING"),
			`pod shop/one: spec.containers[0].lifecycle.stopSignal: Invalid value: "SIGNOTHING": is not a signal`,
		},
		"stop signal by CRI's own name for none": {
			withStopSignal("RUNTIME_DEFAULT"),
			`pod shop/one: spec.containers[0].lifecycle.stopSignal: Invalid value: "RUNTIME_DEFAULT": is not a signal`,
		},
		"image": {
			func(c *v1.Container) { c.Image = "nginx:1.99" },
			`pod shop/one, container "server": image "nginx:1.99" is not in the container runtime, and images are not pulled`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub()
			s.images = []string{"busybox"}
			_, err := s.connect(t, cri.Options{}).StartPod(t.Context(), onePod(c.edit))
			require.EqualError(t, err, c.want)
			require.Empty(t, s.callsOf("RunPodSandbox"))
		})
	}
}

func TestValidatePodFindsEverythingThatIsWrong(t *testing.T) {
	pod := webPod()
	require.Empty(t, cri.ValidatePod(pod))
	pod.UID = ""
	pod.Spec.InitContainers[1].SecurityContext = &v1.SecurityContext{}
	withStopSignal("SIGUSR3")(&pod.Spec.Containers[1])
	require.EqualError(t, cri.ValidatePod(pod).ToAggregate(), `[metadata.uid: Required value: a running pod is found by it, `+
		`spec.initContainers[1].securityContext: Forbidden: is not supported with --runtime=cri, `+
		`spec.containers[1].lifecycle.stopSignal: Invalid value: "SIGUSR3": is not a signal]`)

	_, err := newStub().connect(t, cri.Options{}).StartPod(t.Context(), pod)
	require.ErrorContains(t, err, "pod shop/web: [metadata.uid: Required value")
}

func TestValidatePodRefusesWhatWouldIsolateAPodLess(t *testing.T) {
	pod := webPod()
	pod.Spec.SecurityContext = &v1.PodSecurityContext{} // as the API server writes it
	require.Empty(t, cri.ValidatePod(pod))
	pod.Spec.SecurityContext.RunAsNonRoot = ptr.To(true)
	pod.Spec.RuntimeClassName, pod.Spec.HostPID = ptr.To("kata"), true
	require.EqualError(t, cri.ValidatePod(pod).ToAggregate(), `[spec.hostPID: Forbidden: is not supported with --runtime=cri, `+
		`spec.runtimeClassName: Forbidden: is not supported with --runtime=cri, `+
		`spec.securityContext: Forbidden: is not supported with --runtime=cri]`)
}

func TestStartPodThatFailsRemovesWhatItMade(t *testing.T) {
	broken := status.Error(codes.Internal, "broken")
	for name, c := range map[string]struct {
		method   string
		exitCode int32
		want     string
	}{
		"create": {method: "CreateContainer", want: `pod shop/web, container "migrate": failed to create: container not found: rpc error: code = Internal desc = broken`},
		"start":  {method: "StartContainer", want: `pod shop/web, container "migrate": failed to start: rpc error: code = Internal desc = broken`},
		"status": {method: "ContainerStatus", want: `pod shop/web, container "migrate": failed to read the status of container "migrate-0": rpc error: code = Internal desc = broken`},
		"init":   {exitCode: 3, want: `pod shop/web, container "migrate": init container exited with 3`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub()
			s.exitCodes = map[string]int32{"migrate": c.exitCode}
			s.fail(c.method, broken)
			_, err := s.connect(t, cri.Options{}).StartPod(t.Context(), webPod())
			require.EqualError(t, err, c.want)
			sandboxes, containers := s.count()
			require.Zero(t, sandboxes)
			require.Zero(t, containers)
			require.Len(t, s.callsOf("StopPodSandbox"), 1)
		})
	}
}

// A container that runs, and one whose start has failed although it may run, have the pod's grace.
func TestStartPodThatFailsGivesGraceToWhatRuns(t *testing.T) {
	s := newStub()
	s.loseAnswerOf = "StartContainer"
	pod := onePod(nil)
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](17)
	_, err := s.connect(t, cri.Options{}).StartPod(t.Context(), pod)
	require.ErrorContains(t, err, "failed to start")
	stops := requests[*runtimeapi.StopContainerRequest](s)
	require.Len(t, stops, 1)
	require.EqualValues(t, 17, stops[0].GetTimeout())
	_, containers := s.count()
	require.Zero(t, containers)
}

// ctx ends while StartPod starts the init container or waits for its exit.
func TestStartPodThatIsCancelledRemovesWhatItMade(t *testing.T) {
	s := newStub()
	runtime := s.connect(t, cri.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the node goes down")
	done := make(chan error)
	go func() {
		_, err := runtime.StartPod(ctx, webPod()) // its init container does not exit
		done <- err
	}()
	require.Eventually(t, func() bool { return len(s.callsOf("StartContainer")) == 1 }, waitAtMost, pollEvery)
	cancel(why)
	require.ErrorIs(t, <-done, why)
	sandboxes, containers := s.count()
	require.Zero(t, sandboxes)
	require.Zero(t, containers)
}

func TestStartPodRemovesASandboxWhoseAnswerWasLost(t *testing.T) {
	s := newStub()
	s.loseAnswerOf = "RunPodSandbox"
	_, err := s.connect(t, cri.Options{}).StartPod(t.Context(), onePod(nil))
	require.EqualError(t, err, "failed to run the sandbox of pod shop/one: rpc error: code = Unavailable desc = lost")
	sandboxes, _ := s.count()
	require.Zero(t, sandboxes)
}

func TestStartPodThatFailsReportsWhatItCouldNotRemove(t *testing.T) {
	s := newStub()
	s.fail("CreateContainer", status.Error(codes.Internal, "broken"))
	s.fail("StopPodSandbox", status.Error(codes.Internal, "stuck"))
	_, err := s.connect(t, cri.Options{}).StartPod(t.Context(), onePod(nil))
	require.ErrorContains(t, err, "broken")
	require.ErrorContains(t, err, `failed to stop sandbox "sandbox-0" of pod shop/one: rpc error: code = Internal desc = stuck`)
}

func TestStartPodAdoptsAPodThatRuns(t *testing.T) {
	s := newStub()
	s.exitCodes = map[string]int32{"migrate": 0}
	runtime := s.connect(t, cri.Options{})
	started, err := runtime.StartPod(t.Context(), webPod())
	require.NoError(t, err)

	adopted, err := runtime.StartPod(t.Context(), webPod())
	require.NoError(t, err)
	require.Equal(t, started, adopted)
	require.Len(t, s.callsOf("RunPodSandbox"), 1)
	require.Len(t, s.callsOf("StartContainer"), 4)
}

func TestStartPodReplacesASandboxThatIsNotReady(t *testing.T) {
	s := newStub()
	runtime := s.connect(t, cri.Options{})
	_, err := runtime.StartPod(t.Context(), onePod(nil))
	require.NoError(t, err)
	s.mu.Lock()
	s.sandboxes["sandbox-0"].State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	s.mu.Unlock()

	_, err = runtime.StartPod(t.Context(), onePod(nil))
	require.NoError(t, err)
	require.Len(t, s.callsOf("RemovePodSandbox"), 1)
	require.Len(t, s.callsOf("RunPodSandbox"), 2)
	require.Len(t, s.callsOf("StartContainer"), 2)
}
