package validation_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/validation"
)

// A pod that uses every feature is valid and keeps all its fields with the zero Options.
func TestZeroOptionsHaveEveryFeatureOn(t *testing.T) {
	require.Nil(t, validation.ValidatePodTermination(tenContainers(), validation.Options{}, nil))
	s := tenContainers()
	dropFromNew(s, validation.Options{})
	require.Equal(t, tenContainers(), s)
}

// Without a stored pod ForUpdate returns the options as they are. With one, a feature that is on stays on.
func TestForUpdateWithoutAStoredPod(t *testing.T) {
	require.Equal(t, allOff(), allOff().ForUpdate(nil))
	allOn := validation.Options{}
	require.Equal(t, allOn, allOn.ForUpdate(nil))
	require.Equal(t, allOn, allOn.ForUpdate(tenContainers()))
}

// Every feature is off. For the update of a stored pod, ForUpdate switches on the features that the stored pod uses already,
// and no others.
func TestForUpdateOfAStoredPod(t *testing.T) {
	const sleepAction, zeroSleep, stopSignals = "PodLifecycleSleepAction", "PodLifecycleSleepActionAllowZero", "ContainerStopSignals"
	for name, c := range map[string]struct {
		old  *v1.PodSpec
		want gateMap // the features that are on for the update
	}{
		"empty lifecycle":                      {old: spec(withContainer(v1.Container{Lifecycle: &v1.Lifecycle{}})), want: gateMap{}},
		"exec hook":                            {old: spec(withHook(exec("true"))), want: gateMap{}},
		"sleep":                                {old: spec(withHook(sleep(5))), want: gateMap{sleepAction: true}},
		"sleep of 0":                           {old: spec(withHook(exec("true")), withHook(sleep(0))), want: gateMap{sleepAction: true, zeroSleep: true}},
		"sleep of 0 in postStart":              {old: spec(withContainer(v1.Container{Lifecycle: &v1.Lifecycle{PostStart: sleep(0)}})), want: gateMap{sleepAction: true, zeroSleep: true}},
		"sleep of 0 in a sidecar":              {old: spec(withInit(sidecar(preStop(sleep(0))))), want: gateMap{sleepAction: true, zeroSleep: true}},
		"sleep of 0 in an ephemeral container": {old: spec(withEphemeral(preStop(sleep(0)))), want: gateMap{sleepAction: true, zeroSleep: true}},
		"stop signal":                          {old: spec(withContainer(v1.Container{Lifecycle: signal(v1.SIGINT)})), want: gateMap{stopSignals: true}},
		"stop signal in a sidecar":             {old: spec(withContainer(v1.Container{}), withInit(sidecar(signal(v1.SIGINT)))), want: gateMap{stopSignals: true}},
	} {
		require.Equal(t, c.want.options(), allOff().ForUpdate(c.old), name)
	}
}

// ForUpdate switches on the features that a stored pod uses already. It is called for every pod that is admitted, so it must not
// allocate.
func TestForUpdateAllocatesNothing(t *testing.T) {
	old, off := tenContainers(), allOff()
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = off.ForUpdate(old) }))
}
