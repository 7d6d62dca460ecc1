//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/metrics"
)

const containerID = "test://abc1234"

// hookPod returns a pod at 127.0.0.1 with one container, and that container.
func hookPod() (*v1.Pod, *v1.Container) {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "42"},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name:  "server",
			Ports: []v1.ContainerPort{{Name: "admin", ContainerPort: 8080}},
		}}},
		Status: v1.PodStatus{PodIPs: []v1.PodIP{{IP: "127.0.0.1"}}},
	}
	return pod, &pod.Spec.Containers[0]
}

// runHook runs one handler for the container of hookPod.
func runHook(ctx context.Context, opts lifecycle.HandlerRunnerOptions, handler *v1.LifecycleHandler) (string, error) {
	pod, container := hookPod()
	return lifecycle.NewHandlerRunner(opts).Run(ctx, containerID, pod, container, handler)
}

// countingMetrics returns a metrics handle, and a function that reads one of its counters.
func countingMetrics(t *testing.T) (*metrics.Lifecycle, func(name string) float64) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	handle, err := metrics.NewLifecycle(reg, metrics.Options{})
	require.NoError(t, err)
	return handle, func(name string) float64 {
		count, err := testutil.GatherAndCount(reg, name)
		require.NoError(t, err)
		require.Equal(t, 1, count, "no counter %s", name)
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, family := range families {
			if family.GetName() == name {
				return family.GetMetric()[0].GetCounter().GetValue()
			}
		}
		return -1
	}
}

// A handler without exec, httpGet and sleep fails with the kubelet's message.
func TestHandlersThatCannotRun(t *testing.T) {
	tests := map[string]struct {
		handler *v1.LifecycleHandler
		err     string
	}{
		"nil":   {nil, "invalid handler: nil"},
		"empty": {&v1.LifecycleHandler{}, "invalid handler: &LifecycleHandler{Exec:nil,HTTPGet:nil,TCPSocket:nil,Sleep:nil,}"},
		"tcpSocket": {
			&v1.LifecycleHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(80), Host: "db"}},
			"invalid handler: &LifecycleHandler{Exec:nil,HTTPGet:nil,TCPSocket:&TCPSocketAction{Port:{0 80 },Host:db,},Sleep:nil,}",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			msg, err := runHook(t.Context(), lifecycle.HandlerRunnerOptions{}, tt.handler)
			require.EqualError(t, err, tt.err)
			require.Equal(t, "Cannot run handler: "+tt.err, msg)
		})
	}
}

// The API server allows only one handler. With several, the first in the kubelet's order runs, and no other:
// exec, then httpGet, then sleep.
func TestFirstOfSeveralHandlersRuns(t *testing.T) {
	all := v1.LifecycleHandler{
		Exec:      &v1.ExecAction{Command: []string{"true"}},
		HTTPGet:   &v1.HTTPGetAction{Port: intstr.FromInt32(80)},
		TCPSocket: &v1.TCPSocketAction{},
		Sleep:     &v1.SleepAction{},
	}
	commands := &recordingCommands{}
	doer := &recordingDoer{}
	opts := lifecycle.HandlerRunnerOptions{Commands: commands, HTTP: doer}

	_, err := runHook(t.Context(), opts, &all)
	require.NoError(t, err)
	require.Len(t, commands.calls, 1)
	require.Empty(t, doer.requests)

	all.Exec = nil
	_, err = runHook(t.Context(), opts, &all)
	require.NoError(t, err)
	require.Len(t, doer.requests, 1)

	all.HTTPGet = nil // the sleep of 0 s is left
	_, err = runHook(t.Context(), opts, &all)
	require.NoError(t, err)
	require.Len(t, commands.calls, 1, "no second command")
	require.Len(t, doer.requests, 1, "no second request")
}

// Pod and container are nil and the context has ended. Each kind of hook must return an error with a
// message instead of a panic.
func TestHooksAcceptNilArguments(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(lifecycle.CauseGraceSpent)
	handlers := map[string]struct {
		handler v1.LifecycleHandler
		message string
	}{
		"exec": {
			v1.LifecycleHandler{Exec: &v1.ExecAction{}},
			`Exec lifecycle hook ([]) for Container "" in Pod "<nil>" failed - error: no command runner for exec hooks: Commands is nil, message: ""`,
		},
		"httpGet without a pod": {
			v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/bye", Port: intstr.FromInt32(80)}},
			`HTTP lifecycle hook (/bye) for Container "" in Pod "<nil>" failed - error: failed to find networking container: <nil>`,
		},
		"httpGet without a container": {
			v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{Path: "/bye", Host: "localhost", Port: intstr.FromString("admin")}},
			`HTTP lifecycle hook (/bye) for Container "" in Pod "<nil>" failed - error: strconv.Atoi: parsing "admin": invalid syntax`,
		},
		"sleep": {
			v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 5}},
			`Sleep lifecycle hook (5) for Container "" in Pod "<nil>" failed - error: container terminated before sleep hook finished`,
		},
	}
	for name, tt := range handlers {
		t.Run(name, func(t *testing.T) {
			runner := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{})
			msg, err := runner.Run(ctx, "", nil, nil, &tt.handler)
			require.Error(t, err)
			require.Equal(t, tt.message, msg)
		})
	}
}

// Names that no API server would accept are quoted in the message as in the kubelet's (%q).
func TestMessageEscapesInvalidNames(t *testing.T) {
	pod, container := hookPod()
	pod.Name, pod.Namespace, container.Name = `we"b`, "shøp\n", `ser\ver`
	opts := lifecycle.HandlerRunnerOptions{Commands: &recordingCommands{err: errors.New("no")}}
	msg, err := lifecycle.NewHandlerRunner(opts).Run(t.Context(), containerID, pod, container, execHandler("true"))
	require.Error(t, err)
	require.Equal(t, `Exec lifecycle hook ([true]) for Container "ser\\ver" in Pod "we\"b_shøp\n(42)" failed - error: no, message: ""`, msg)
}
