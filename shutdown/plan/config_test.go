package plan_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// Arguments of Config.Validate and Config.Schedule: a feature gate is on or off. Validate has two: GracefulNodeShutdown, which the two
// fields need, and then GracefulNodeShutdownBasedOnPodPriority, which the list needs. Schedule has only the latter.
const gateOn, gateOff = true, false

// config returns a configuration with both forms: the two fields ShutdownGracePeriod (total) and
// ShutdownGracePeriodCriticalPods (critical), and the list ShutdownGracePeriodByPodPriority, which may be empty.
func config(total, critical time.Duration, list ...plan.PodPriorityGracePeriod) plan.Config {
	return plan.Config{
		ShutdownGracePeriod:              metav1.Duration{Duration: total},
		ShutdownGracePeriodCriticalPods:  metav1.Duration{Duration: critical},
		ShutdownGracePeriodByPodPriority: list,
	}
}

// configWithList returns a configuration with only the list ShutdownGracePeriodByPodPriority.
func configWithList(list ...plan.PodPriorityGracePeriod) plan.Config { return config(0, 0, list...) }

// entry returns an entry of Config.ShutdownGracePeriodByPodPriority: the pods from this priority on have these seconds.
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

// Validate accepts what the kubelet accepts: no configuration, a total of at least 1 s, or a list whose sum is at most the
// longest duration. The list's feature gate (byPriority) may be off if there is no list.
func TestValidateAcceptsWhatTheKubeletAccepts(t *testing.T) {
	list := []plan.PodPriorityGracePeriod{entry(0, 10), entry(5, 0)}
	for name, c := range map[string]struct {
		cfg        plan.Config
		byPriority bool
	}{
		"nothing":                          {cfg: plan.Config{}, byPriority: gateOn},
		"nothing, gate off":                {cfg: plan.Config{}, byPriority: gateOff},
		"an empty list, gate off":          {cfg: configWithList([]plan.PodPriorityGracePeriod{}...), byPriority: gateOff},
		"one second":                       {cfg: config(time.Second, 0), byPriority: gateOn},
		"all of it critical":               {cfg: config(time.Second, time.Second), byPriority: gateOn},
		"a list":                           {cfg: configWithList(list...), byPriority: gateOn},
		"a list with the longest Duration": {cfg: configWithList(entry(0, 10), entry(5, math.MaxInt64/int64(time.Second)-10)), byPriority: gateOn},
		"a total, gate off":                {cfg: config(time.Second, 0), byPriority: gateOff},
	} {
		require.NoError(t, c.cfg.Validate(gateOn, c.byPriority), name)
	}
}

// The texts and their order are those of the kubelet's validation, so that an administrator finds them in
// Kubernetes' documentation and issues.
func TestValidateReturnsTheKubeletsErrorsInOrder(t *testing.T) {
	list := entry(0, 10)
	for name, c := range map[string]struct {
		cfg        plan.Config
		byPriority bool // the gate of the list; GracefulNodeShutdown, which the two fields need, is on
		want       string
	}{
		"critical above total": {cfg: config(time.Second, 2*time.Second), byPriority: gateOn, want: "" +
			"invalid configuration: shutdownGracePeriodCriticalPods {2s} must be <= shutdownGracePeriod {1s}"},
		"negative total": {cfg: config(-time.Second, -time.Second), byPriority: gateOn, want: "" +
			"invalid configuration: shutdownGracePeriod {-1s} must be either zero or otherwise >= 1 sec\n" +
			"invalid configuration: shutdownGracePeriodCriticalPods {-1s} must be either zero or otherwise >= 1 sec"},
		"too short, gate off": {cfg: config(time.Millisecond, 2*time.Millisecond, list), byPriority: gateOff, want: "" +
			"invalid configuration: shutdownGracePeriodCriticalPods {2ms} must be <= shutdownGracePeriod {1ms}\n" +
			"invalid configuration: shutdownGracePeriod {1ms} must be either zero or otherwise >= 1 sec\n" +
			"invalid configuration: shutdownGracePeriodCriticalPods {2ms} must be either zero or otherwise >= 1 sec\n" +
			"invalid configuration: Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority"},
		"a sum that overflows": {cfg: configWithList(list, entry(5, 9223372027)), byPriority: gateOn, want: "" +
			"invalid configuration: shutdownGracePeriodByPodPriority[1].shutdownGracePeriodSeconds 9223372027 makes the sum exceed 9223372036, the maximum of a duration"},
		"a total and a list": {cfg: config(time.Second, 0, list), byPriority: gateOn, want: "" +
			"invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time"},
		"a total and a list, gate off": {cfg: config(time.Second, 0, list), byPriority: gateOff, want: "" +
			"invalid configuration: Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority"},
	} {
		require.EqualError(t, c.cfg.Validate(gateOn, c.byPriority), c.want, name)
	}
}

const totalNeedsGate = "invalid configuration: specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown"

// The gate GracefulNodeShutdown is off, and that of the list is on. A positive total is an error. A list is none, because it depends
// only on its own gate.
func TestValidateRejectsATotalWithTheGateOff(t *testing.T) {
	require.EqualError(t, config(time.Second, 0).Validate(gateOff, gateOn), totalNeedsGate)
	require.NoError(t, configWithList(entry(0, 10)).Validate(gateOff, gateOn))
}

// The total is negative, which is an error whether the gate GracefulNodeShutdown is on or off. If it is off, Validate does
// not add the error about the gate, as the kubelet does not: both calls return the same text.
func TestValidateRejectsANegativeTotalWithTheGateOff(t *testing.T) {
	negative := config(-time.Second, -time.Second)
	require.EqualError(t, negative.Validate(gateOff, gateOn), negative.Validate(gateOn, gateOn).Error())
}

// Both feature gates are off, and both the two fields and the list are set. As in the kubelet, the errors come in this order: those
// about the values of the two fields, the one about their gate (GracefulNodeShutdown), and the one about the gate of the list.
func TestValidateOrdersTheErrorsAboutTheGates(t *testing.T) {
	require.EqualError(t, config(time.Millisecond, 2*time.Millisecond, entry(0, 10)).Validate(gateOff, gateOff), ""+
		"invalid configuration: shutdownGracePeriodCriticalPods {2ms} must be <= shutdownGracePeriod {1ms}\n"+
		"invalid configuration: shutdownGracePeriod {1ms} must be either zero or otherwise >= 1 sec\n"+
		"invalid configuration: shutdownGracePeriodCriticalPods {2ms} must be either zero or otherwise >= 1 sec\n"+
		totalNeedsGate+"\n"+
		"invalid configuration: Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority")
}
