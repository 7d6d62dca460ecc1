package validation_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/validation"
)

func TestOptionsForANewPod(t *testing.T) {
	require.Equal(t, everything(), validation.OptionsFor(nil, nil))
	require.Equal(t, everything(), validation.OptionsFor(featuregate.NewFeatureGate(), nil), "a gate that never heard of them")
	require.Equal(t, validation.Options{}, validation.OptionsFor(gates{}, nil))
	require.Equal(t, validation.Options{AllowZeroSleep: true}, validation.OptionsFor(gates{"PodLifecycleSleepActionAllowZero": true}, nil))
	require.Equal(t, validation.Options{AllowSleepAction: true}, validation.OptionsFor(gates{"PodLifecycleSleepAction": true}, spec()))
	require.Equal(t, validation.Options{AllowStopSignals: true}, validation.OptionsFor(gates{"ContainerStopSignals": true}, spec()))
}

// What a stored pod uses stays allowed with every gate off.
func TestOptionsForAStoredPod(t *testing.T) {
	zeroSleep := validation.Options{AllowSleepAction: true, AllowZeroSleep: true}
	for name, c := range map[string]struct {
		old  *v1.PodSpec
		want validation.Options
	}{
		"nothing":                  {spec(withContainer(v1.Container{Lifecycle: &v1.Lifecycle{}})), validation.Options{}},
		"another hook":             {spec(withHook(exec("true"))), validation.Options{}},
		"a sleep":                  {spec(withHook(sleep(5))), validation.Options{AllowSleepAction: true}},
		"a sleep of 0":             {spec(withHook(exec("true")), withHook(sleep(0))), zeroSleep},
		"one in a postStart":       {spec(withContainer(v1.Container{Lifecycle: &v1.Lifecycle{PostStart: sleep(0)}})), zeroSleep},
		"one in a sidecar":         {spec(withInit(sidecar(preStop(sleep(0))))), zeroSleep},
		"one where it is no use":   {spec(withEphemeral(preStop(sleep(0)))), zeroSleep},
		"a stop signal":            {spec(withContainer(v1.Container{Lifecycle: signal(v1.SIGINT)})), validation.Options{AllowStopSignals: true}},
		"a stop signal, a sidecar": {spec(withContainer(v1.Container{}), withInit(sidecar(signal(v1.SIGINT)))), validation.Options{AllowStopSignals: true}},
	} {
		require.Equal(t, c.want, validation.OptionsFor(gates{}, c.old), name)
	}
}
