package cri_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/cri"
)

func TestStopPodRemovesTheSandbox(t *testing.T) {
	s := newStub()
	runtime := s.connect(t, cri.Options{})
	_, err := runtime.StartPod(t.Context(), onePod(nil))
	require.NoError(t, err)
	other := onePod(nil)
	other.UID = "one-2"
	_, err = runtime.StartPod(t.Context(), other)
	require.NoError(t, err)

	require.NoError(t, runtime.StopPod(t.Context(), onePod(nil)))
	require.Len(t, requests[*runtimeapi.StopPodSandboxRequest](s), 1)
	equalProto(t, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: "sandbox-0"}, requests[*runtimeapi.RemovePodSandboxRequest](s)[0])
	sandboxes, containers := s.count()
	require.Equal(t, 1, sandboxes, "a pod of another UID stays")
	require.Equal(t, 1, containers)

	require.NoError(t, runtime.StopPod(t.Context(), onePod(nil)), "a pod that is gone is no error")
}

func TestStopPodNamesWhatFailed(t *testing.T) {
	broken := status.Error(codes.Internal, "broken")
	for method, want := range map[string]string{
		"ListPodSandbox":   `failed to list the sandboxes of pod shop/one: rpc error: code = Internal desc = broken`,
		"StopPodSandbox":   `failed to stop sandbox "sandbox-0" of pod shop/one: rpc error: code = Internal desc = broken`,
		"RemovePodSandbox": `failed to remove sandbox "sandbox-0" of pod shop/one: rpc error: code = Internal desc = broken`,
	} {
		s := newStub()
		runtime := s.connect(t, cri.Options{})
		_, err := runtime.StartPod(t.Context(), onePod(nil))
		require.NoError(t, err)
		s.fail(method, broken)
		require.EqualError(t, runtime.StopPod(t.Context(), onePod(nil)), want)

		s.fail(method, status.Error(codes.NotFound, "gone meanwhile"))
		if method != "ListPodSandbox" {
			require.NoError(t, runtime.StopPod(t.Context(), onePod(nil)))
		}
	}
}
