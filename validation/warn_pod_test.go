package validation_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/validation"
)

func warn(s *v1.PodSpec) []string {
	return validation.WarnPodTermination(s, field.NewPath("spec"))
}

func TestPodsWithoutWarnings(t *testing.T) {
	unset := spec(withHook(sleep(99)))
	unset.TerminationGracePeriodSeconds = nil
	for name, s := range map[string]*v1.PodSpec{
		"nil":                       nil,
		"no hook":                   spec(withContainer(v1.Container{Lifecycle: signal(v1.SIGINT), LivenessProbe: probe(1)})),
		"a sleep with room":         spec(withHook(sleep(29))),
		"the least grace for exec":  spec(withGrace(2), withHook(exec("true"))),
		"a sleep of 0":              spec(withGrace(1), withHook(sleep(0))),
		"a grace that is not known": unset,
		"hooks where none may be":   spec(withInit(v1.Container{Lifecycle: preStop(sleep(30))}), withEphemeral(preStop(sleep(30)))),
		"a sidecar without a hook":  spec(withInit(sidecar(nil)), withInit(sidecar(signal(v1.SIGINT)))),
		"a probe with more room":    spec(withContainer(v1.Container{Lifecycle: preStop(sleep(5)), LivenessProbe: probe(6)})),
		"a probe and an exec":       spec(withContainer(v1.Container{Lifecycle: preStop(exec("true")), LivenessProbe: probe(1)})),
		"a postStart that is long":  spec(withContainer(v1.Container{Lifecycle: &v1.Lifecycle{PostStart: sleep(30)}})),
	} {
		require.Nil(t, warn(s), name)
	}
}

func TestWarningOfTheGrace(t *testing.T) {
	require.Equal(t, []string{"spec.terminationGracePeriodSeconds: 0 deletes the pod at once: its object does not wait for its containers, and their hooks have no time (k/k#120671)"},
		warn(spec(withGrace(0))))
	require.Equal(t, []string{"spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"},
		warn(spec(withGrace(-7))))
}

func TestWarningOfASleepThatUsesUpTheGrace(t *testing.T) {
	require.Equal(t, []string{hookPath + ".sleep: 30 uses up terminationGracePeriodSeconds (30): the container is left 2 s to end"},
		warn(spec(withHook(sleep(30)))))
	require.Len(t, warn(spec(withHook(sleep(31)))), 1)
}

func TestWarningOfAHookWithoutTime(t *testing.T) {
	require.Equal(t, []string{hookPath + ": has no room, terminationGracePeriodSeconds is 1"}, warn(spec(withGrace(1), withHook(exec("true")))))
	require.Contains(t, warn(spec(withGrace(0), withHook(sleep(1)))), hookPath+": has no room, terminationGracePeriodSeconds is 0")
}

func TestWarningOfASleepThatUsesUpTheGraceOfAProbe(t *testing.T) {
	c := v1.Container{Lifecycle: preStop(sleep(5)), LivenessProbe: probe(5), StartupProbe: probe(3), ReadinessProbe: probe(1)}
	require.Equal(t, []string{
		"spec.containers[0].livenessProbe.terminationGracePeriodSeconds: 5 is used up by the preStop sleep of 5 s when this probe fails: the container is left 2 s to end",
		"spec.containers[0].startupProbe.terminationGracePeriodSeconds: 3 is used up by the preStop sleep of 5 s when this probe fails: the container is left 2 s to end",
	}, warn(spec(withContainer(c))))
}

func TestWarningOfASidecarsPreStop(t *testing.T) {
	require.Equal(t, []string{
		"spec.initContainers[1].lifecycle.preStop.sleep: 30 uses up terminationGracePeriodSeconds (30): the container is left 2 s to end",
		"spec.initContainers[1].lifecycle.preStop: runs when the pod begins to terminate, beside the hooks of the main containers, and not when the sidecar's turn to stop has come",
	}, warn(spec(withInit(v1.Container{}), withInit(sidecar(preStop(sleep(30)))))))
}

func TestWarningOfAHookThatNeverRuns(t *testing.T) {
	socket := &v1.LifecycleHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(80)}}
	require.Equal(t, []string{
		"spec.containers[0].lifecycle.postStart.tcpSocket: is deprecated: the kubelet does not run it, the hook fails",
		hookPath + ".tcpSocket: is deprecated: the kubelet does not run it, the hook fails",
	}, warn(spec(withContainer(v1.Container{Lifecycle: &v1.Lifecycle{PostStart: socket, PreStop: socket}}))))
}
