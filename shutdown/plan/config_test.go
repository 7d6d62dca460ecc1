package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// config returns a configuration with both forms; the list may be empty.
func config(total, critical time.Duration, list ...plan.PodPriorityGracePeriod) plan.Config {
	return plan.Config{
		ShutdownGracePeriod:              metav1.Duration{Duration: total},
		ShutdownGracePeriodCriticalPods:  metav1.Duration{Duration: critical},
		ShutdownGracePeriodByPodPriority: list,
	}
}

// entry returns an entry of the list form.
func entry(priority int32, seconds int64) plan.PodPriorityGracePeriod {
	return plan.PodPriorityGracePeriod{Priority: priority, ShutdownGracePeriodSeconds: seconds}
}

// The shutdown fields of a kubelet's configuration file can be read into a Config as they are.
func TestConfigHasTheKubeletsFieldNames(t *testing.T) {
	var cfg plan.Config
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
shutdownGracePeriod: 30s
shutdownGracePeriodCriticalPods: 10s
shutdownGracePeriodByPodPriority:
- priority: 100000
  shutdownGracePeriodSeconds: 10
- priority: 0
  shutdownGracePeriodSeconds: 60
`), &cfg))
	require.Equal(t, config(30*time.Second, 10*time.Second, entry(100000, 10), entry(0, 60)), cfg)
}

// Validate accepts what the kubelet accepts. The two-field form does not need the gate of the list form.
func TestValidateAcceptsWhatTheKubeletAccepts(t *testing.T) {
	list := []plan.PodPriorityGracePeriod{entry(0, 10), entry(5, 0)}
	for name, c := range map[string]struct {
		cfg          plan.Config
		priorityGate bool
	}{
		"nothing":                  {plan.Config{}, true},
		"nothing, gate off":        {plan.Config{}, false},
		"an empty list, gate off":  {config(0, 0, []plan.PodPriorityGracePeriod{}...), false},
		"one second":               {config(time.Second, 0), true},
		"all of it critical":       {config(time.Second, time.Second), true},
		"a list":                   {config(0, 0, list...), true},
		"the longest list":         {config(0, 0, entry(0, 10), entry(5, 9223372026)), true},
		"a total without the gate": {config(time.Second, 0), false},
	} {
		require.NoError(t, c.cfg.Validate(true, c.priorityGate), name)
	}
}

// The texts and their order are those of the kubelet's validation, so that an administrator finds them in
// Kubernetes' documentation and issues.
func TestValidateReturnsTheKubeletsErrorsInOrder(t *testing.T) {
	list := entry(0, 10)
	for name, c := range map[string]struct {
		cfg          plan.Config
		priorityGate bool
		want         string
	}{
		"critical above total": {config(time.Second, 2*time.Second), true, "" +
			"invalid configuration: shutdownGracePeriodCriticalPods {2s} must be <= shutdownGracePeriod {1s}"},
		"negative total": {config(-time.Second, -time.Second), true, "" +
			"invalid configuration: shutdownGracePeriod {-1s} must be either zero or otherwise >= 1 sec\n" +
			"invalid configuration: shutdownGracePeriodCriticalPods {-1s} must be either zero or otherwise >= 1 sec"},
		"too short, gate off": {config(time.Millisecond, 2*time.Millisecond, list), false, "" +
			"invalid configuration: shutdownGracePeriodCriticalPods {2ms} must be <= shutdownGracePeriod {1ms}\n" +
			"invalid configuration: shutdownGracePeriod {1ms} must be either zero or otherwise >= 1 sec\n" +
			"invalid configuration: shutdownGracePeriodCriticalPods {2ms} must be either zero or otherwise >= 1 sec\n" +
			"invalid configuration: Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority"},
		"a sum that overflows": {config(0, 0, list, entry(5, 9223372027)), true, "" +
			"invalid configuration: shutdownGracePeriodByPodPriority[1].shutdownGracePeriodSeconds 9223372027 makes the sum exceed 9223372036, the maximum of a duration"},
		"both forms": {config(time.Second, 0, list), true, "" +
			"invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time"},
		"both forms, gate off": {config(time.Second, 0, list), false, "" +
			"invalid configuration: Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority"},
	} {
		require.EqualError(t, c.cfg.Validate(true, c.priorityGate), c.want, name)
	}
}

// Without the gate GracefulNodeShutdown a positive total is an error. The list form depends only on its
// own gate.
func TestValidateRejectsATotalWithTheGateOff(t *testing.T) {
	const refused = "invalid configuration: specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown"
	require.EqualError(t, config(time.Second, 0).Validate(false, true), refused)
	require.NoError(t, config(0, 0, entry(0, 10)).Validate(false, true), "the list has a gate of its own")
	require.EqualError(t, config(-time.Second, -time.Second).Validate(false, true), config(-time.Second, -time.Second).Validate(true, true).Error(),
		"as the kubelet, which speaks of the values only")
	require.EqualError(t, config(time.Millisecond, 2*time.Millisecond, entry(0, 10)).Validate(false, false), ""+
		"invalid configuration: shutdownGracePeriodCriticalPods {2ms} must be <= shutdownGracePeriod {1ms}\n"+
		"invalid configuration: shutdownGracePeriod {1ms} must be either zero or otherwise >= 1 sec\n"+
		"invalid configuration: shutdownGracePeriodCriticalPods {2ms} must be either zero or otherwise >= 1 sec\n"+
		refused+"\n"+
		"invalid configuration: Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority", "in the kubelet's order")
}
