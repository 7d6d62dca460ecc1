package cri_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/cri"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
)

var _ podruntime.Runtime = (*cri.Runtime)(nil)

func TestNewRefusesAnEndpointThatIsNotASocket(t *testing.T) {
	for endpoint, want := range map[string]string{
		"":                          `container runtime endpoint is not set, want unix:///path/to/socket`,
		"/run/containerd.sock":      `container runtime endpoint "/run/containerd.sock" has the scheme "", want unix:///path/to/socket`,
		"tcp://localhost:1234":      `container runtime endpoint "tcp://localhost:1234" has the scheme "tcp", want unix:///path/to/socket`,
		"unix://run/containerd":     `container runtime endpoint "unix://run/containerd" has no absolute path, want unix:///path/to/socket`,
		"unix:containerd.sock":      `container runtime endpoint "unix:containerd.sock" has no absolute path, want unix:///path/to/socket`,
		"unix:///\x7f":              `container runtime endpoint "unix:///\x7f" is not a URL, want unix:///path/to/socket: parse "unix:///\x7f": net/url: invalid control character in URL`,
		"npipe:////./pipe/anything": `container runtime endpoint "npipe:////./pipe/anything" has the scheme "npipe", want unix:///path/to/socket`,
	} {
		_, err := cri.New(t.Context(), endpoint, cri.Options{})
		require.EqualError(t, err, want)
	}
}

func TestNewNamesAnEndpointThatNobodyServes(t *testing.T) {
	endpoint := "unix://" + t.TempDir() + "/nobody"
	_, err := cri.New(t.Context(), endpoint, cri.Options{})
	require.ErrorContains(t, err, `failed to reach the container runtime at "`+endpoint+`"`)
	require.ErrorContains(t, err, "no such file or directory")
}

func TestNewNamesAnEndpointThatIsNoContainerRuntime(t *testing.T) {
	s := newStub()
	s.fail("Version", status.Error(codes.Unimplemented, "unknown service runtime.v1.RuntimeService"))
	endpoint, stop, err := s.serve()
	require.NoError(t, err)
	t.Cleanup(stop)
	_, err = cri.New(t.Context(), endpoint, cri.Options{})
	require.ErrorContains(t, err, `failed to reach the container runtime at "`+endpoint+`"`)
	require.ErrorContains(t, err, "unknown service runtime.v1.RuntimeService")
}

func TestCloseEndsTheStreamAndMayBeCalledTwice(t *testing.T) {
	s := newStub()
	s.events = make(chan *runtimeapi.ContainerEventResponse)
	runtime := s.connect(t, cri.Options{})
	s.events <- &runtimeapi.ContainerEventResponse{ContainerId: "another"} // is received only when the stream is open
	require.NoError(t, runtime.Close())
	<-s.eventsDone
	require.NoError(t, runtime.Close())
}

func TestCloseLeavesThePodsRunning(t *testing.T) {
	s := newStub()
	runtime := s.connect(t, cri.Options{})
	_, err := runtime.StartPod(t.Context(), onePod(nil))
	require.NoError(t, err)
	require.NoError(t, runtime.Close())
	require.Empty(t, s.callsOf("StopContainer"))
	require.Empty(t, s.callsOf("StopPodSandbox"))
}
