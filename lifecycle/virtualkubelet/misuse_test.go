//go:build go1.25

package virtualkubelet_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
)

// callAll calls every method that takes a pod, and returns the errors.
func callAll(t *testing.T, p *virtualkubelet.Provider, pod *v1.Pod) map[string]error {
	t.Helper()
	ctx := t.Context()
	_, kill := p.KillPod(ctx, pod, shutdown.KillRequest{})
	p.StatusChanged(pod)
	return map[string]error{
		"CreatePod": p.CreatePod(ctx, pod), "UpdatePod": p.UpdatePod(ctx, pod), "DeletePod": p.DeletePod(ctx, pod),
		"KillPod": kill, "Adopt": p.Adopt(ctx, virtualkubelet.Adopted{Pod: pod}),
	}
}

// A Provider that was not made with New returns an error from each method, instead of a panic.
func TestMethodsOfTheZeroProviderFail(t *testing.T) {
	for _, p := range []*virtualkubelet.Provider{{}, nil} {
		errs := callAll(t, p, podOf(plain("app")))
		_, errs["GetPod"] = p.GetPod(t.Context(), "ns", "pod")
		_, errs["GetPodStatus"] = p.GetPodStatus(t.Context(), "ns", "pod")
		_, errs["GetPods"] = p.GetPods(t.Context())
		_, errs["Pods"] = p.Pods(t.Context())
		errs["Close"] = p.Close(t.Context())
		p.NotifyPods(t.Context(), func(*v1.Pod) {})
		for method, err := range errs {
			require.EqualError(t, err, "the provider was not made with New", method)
		}
	}
}

// A nil pod and a pod without containers are errors, not panics.
func TestInvalidPodsAreRejected(t *testing.T) {
	inBubble(t, func(b *testbed) {
		for method, err := range callAll(t, b.Provider, nil) {
			require.EqualError(b, err, "the pod is nil", method)
		}
		err := b.CreatePod(b.Context(), podOf())
		require.EqualError(b, err, "pod ns/pod is refused: spec.containers: must not be empty")
		require.True(b, errdefs.IsInvalidInput(err))
	})
}

// A provider without a Runtime and without Pods could run nothing.
func TestNewRequiresARuntimeOrPods(t *testing.T) {
	_, err := virtualkubelet.New(virtualkubelet.Options{})
	require.EqualError(t, err, "failed to make a provider: Runtime or Pods: exactly one must be set")
}
