package criruntime_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
)

// Each wrong endpoint is refused with an error that says what is wrong and what is wanted.
func TestDialRefusesAnEndpointThatIsNotASocket(t *testing.T) {
	for endpoint, want := range map[string]string{
		"":                          `container runtime endpoint is not set, want unix:///path/to/socket`,
		"/run/containerd.sock":      `container runtime endpoint "/run/containerd.sock" has the scheme "", want unix:///path/to/socket`,
		"tcp://localhost:1234":      `container runtime endpoint "tcp://localhost:1234" has the scheme "tcp", want unix:///path/to/socket`,
		"unix://run/containerd":     `container runtime endpoint "unix://run/containerd" has no absolute path, want unix:///path/to/socket`,
		"unix:containerd.sock":      `container runtime endpoint "unix:containerd.sock" has no absolute path, want unix:///path/to/socket`,
		"unix:///\x7f":              `container runtime endpoint "unix:///\x7f" is not a URL, want unix:///path/to/socket: parse "unix:///\x7f": net/url: invalid control character in URL`,
		"npipe:////./pipe/anything": `container runtime endpoint "npipe:////./pipe/anything" has the scheme "npipe", want unix:///path/to/socket`,
	} {
		_, err := criruntime.Dial(t.Context(), endpoint, criruntime.Options{})
		require.EqualError(t, err, want)
	}
}

// Close ends the client only: the container keeps running, and nothing is stopped. The exit of the container is no longer
// watched, so the channel that Exited has returned stays open. A second Close succeeds.
func TestCloseLeavesThePodsRunning(t *testing.T) {
	cri := newFake()
	runtime := cri.dial(t, criruntime.Options{})
	id := startContainer(t, runtime)
	exited := runtime.Exited(id)
	require.NoError(t, runtime.Close())
	require.NoError(t, runtime.Close())
	requireNoExit(t, exited)
	require.Nil(t, runtime.Exited(id))
	require.Equal(t, runtimeapi.ContainerState_CONTAINER_RUNNING, cri.state(id))
	require.Empty(t, cri.callsOf("StopPodSandbox"))
}
