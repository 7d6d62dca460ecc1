package criruntime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/lifecycle/criruntime"
)

// errorsOfMethods calls every method of a runtime, and returns the errors by the names of the methods. With a nil pod it calls only
// the methods that take a pod.
func errorsOfMethods(t *testing.T, r *criruntime.Runtime, pod *v1.Pod) map[string]error {
	t.Helper()
	ctx, errs := t.Context(), map[string]error{}
	_, errs["Running"] = r.Running(ctx, pod)
	errs["StopPodSandbox"] = r.StopPodSandbox(ctx, pod)
	require.Nil(t, r.PodStatus(ctx, pod))
	if pod == nil {
		return errs
	}
	_, errs["Pods"] = r.Pods(ctx)
	errs["StopContainer"] = r.StopContainer(ctx, "id", 1)
	_, errs["RunInContainer"] = r.RunInContainer(ctx, "id", []string{"true"}, time.Second)
	errs["Close"] = r.Close()
	require.Nil(t, r.Exited("id"))
	return errs
}

// Each mistake of a caller is an error that says what is wrong, and no method panics.
func TestMisuse(t *testing.T) {
	for name, test := range map[string]struct {
		runtime *criruntime.Runtime
		pod     *v1.Pod
		want    string
	}{
		"a nil Runtime":  {runtime: nil, pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, want: "the Runtime was not made with Dial"},
		"a zero Runtime": {runtime: &criruntime.Runtime{}, pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, want: "the Runtime was not made with Dial"},
		"a nil pod":      {runtime: newFake().dial(t, criruntime.Options{}), pod: nil, want: "the pod is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			for method, err := range errorsOfMethods(t, test.runtime, test.pod) {
				require.EqualError(t, err, test.want, method)
			}
		})
	}
}

// HostIP must be an IP address. Dial refuses a host name: otherwise the mistake would show only when a hook uses it.
func TestDialRejectsAHostNameAsHostIP(t *testing.T) {
	_, err := criruntime.Dial(t.Context(), "unix:///run/containerd/containerd.sock", criruntime.Options{HostIP: "node-1"})
	require.EqualError(t, err, `Options.HostIP "node-1": must be an IP address`)
}
