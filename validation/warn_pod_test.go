package validation_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/validation"
)

// warn returns the warnings about a spec whose path is "spec".
func warn(s *v1.PodSpec) []string {
	return validation.WarnPodTermination(s, field.NewPath("spec"))
}

// None of these specs has a warning: it has no mistake, or a mistake that ValidatePodTermination rejects.
func TestPodsWithoutWarnings(t *testing.T) {
	unset := spec(withHook(sleep(99)))
	unset.TerminationGracePeriodSeconds = nil
	for name, s := range map[string]*v1.PodSpec{
		"nil":                                 nil,
		"no hook":                             spec(withContainer(v1.Container{Lifecycle: signal(v1.SIGINT), LivenessProbe: probe(1)})),
		"sleep shorter than the grace period": spec(withHook(sleep(29))),
		"exec with the minimum grace period":  spec(withGrace(2), withHook(exec("true"))),
		"sleep of 0":                          spec(withGrace(1), withHook(sleep(0))),
		"grace period not set":                unset,
		"hooks that are invalid":              spec(withInit(v1.Container{Lifecycle: preStop(sleep(30))}), withEphemeral(preStop(sleep(30)))),
		"sidecar without a hook":              spec(withInit(sidecar(nil)), withInit(sidecar(signal(v1.SIGINT)))),
		"probe with a longer grace period":    spec(withContainer(v1.Container{Lifecycle: preStop(sleep(5)), LivenessProbe: probe(6)})),
		"probe and exec hook":                 spec(withContainer(v1.Container{Lifecycle: preStop(exec("true")), LivenessProbe: probe(1)})),
		"long postStart sleep":                spec(withContainer(v1.Container{Lifecycle: &v1.Lifecycle{PostStart: sleep(30)}})),
	} {
		require.Nil(t, warn(s), name)
	}
}

// A grace period of 0 deletes the pod at once, and a negative one counts as 1 s. Both are valid, but their author may expect
// something else, so each has a warning.
func TestWarningAboutTheGracePeriod(t *testing.T) {
	require.Equal(t, []string{"spec.terminationGracePeriodSeconds: 0 deletes the pod immediately: the API server does not wait for its containers, and their hooks have no time (k/k#120671)"},
		warn(spec(withGrace(0))))
	require.Equal(t, []string{"spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"},
		warn(spec(withGrace(-7))))
}

// A sleep of 30 s uses up the grace period of 30 s, so that the container has only the minimum of 2 s to stop. A longer
// sleep, which is also an error of the validation, has the same warning.
func TestWarningAboutASleepAsLongAsTheGracePeriod(t *testing.T) {
	require.Equal(t, []string{hookPath + ".sleep: 30 is not less than terminationGracePeriodSeconds (30): the container has only 2 s to stop"},
		warn(spec(withHook(sleep(30)))))
	require.Len(t, warn(spec(withHook(sleep(31)))), 1)
}

// A container always has 2 s to stop. A grace period below these 2 s leaves its hook no time, be it an exec or a sleep.
func TestWarningAboutAHookWithoutTime(t *testing.T) {
	require.Equal(t, []string{hookPath + ": has no time, terminationGracePeriodSeconds is 1"}, warn(spec(withGrace(1), withHook(exec("true")))))
	require.Contains(t, warn(spec(withGrace(0), withHook(sleep(1)))), hookPath+": has no time, terminationGracePeriodSeconds is 0")
}

// When a liveness or startup probe fails, the probe's own grace period counts, and the preStop sleep of 5 s uses it up.
// There is no warning about a readiness probe, because it stops no container.
func TestWarningAboutASleepAsLongAsTheGracePeriodOfAProbe(t *testing.T) {
	c := v1.Container{Lifecycle: preStop(sleep(5)), LivenessProbe: probe(5), StartupProbe: probe(3), ReadinessProbe: probe(1)}
	require.Equal(t, []string{
		"spec.containers[0].livenessProbe.terminationGracePeriodSeconds: 5 is not more than the preStop sleep of 5 s: when this probe fails, the container has only 2 s to stop",
		"spec.containers[0].startupProbe.terminationGracePeriodSeconds: 3 is not more than the preStop sleep of 5 s: when this probe fails, the container has only 2 s to stop",
	}, warn(spec(withContainer(c))))
}

// A sidecar has a preStop sleep of 30 s. One warning says that the hook runs when the termination begins, not when the sidecar
// is stopped. The other one is about the sleep, which is as long as the grace period.
func TestWarningAboutThePreStopHookOfASidecar(t *testing.T) {
	require.Equal(t, []string{
		"spec.initContainers[1].lifecycle.preStop.sleep: 30 is not less than terminationGracePeriodSeconds (30): the container has only 2 s to stop",
		"spec.initContainers[1].lifecycle.preStop: runs when the pod begins to terminate, together with the hooks of the main containers, not when the sidecar is stopped",
	}, warn(spec(withInit(v1.Container{}), withInit(sidecar(preStop(sleep(30)))))))
}

// The API accepts tcpSocket hooks, but no kubelet runs them.
func TestWarningAboutAHookThatNeverRuns(t *testing.T) {
	socket := &v1.LifecycleHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(80)}}
	require.Equal(t, []string{
		"spec.containers[0].lifecycle.postStart.tcpSocket: is deprecated: the kubelet does not run it, and the hook fails",
		hookPath + ".tcpSocket: is deprecated: the kubelet does not run it, and the hook fails",
	}, warn(spec(withContainer(v1.Container{Lifecycle: &v1.Lifecycle{PostStart: socket, PreStop: socket}}))))
}
