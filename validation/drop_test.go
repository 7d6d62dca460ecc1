package validation_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/validation"
)

// specWithEachKind returns a spec with a container of each kind, each with a copy of lifecycle.
func specWithEachKind(lifecycle *v1.Lifecycle) *v1.PodSpec {
	return spec(
		withContainer(v1.Container{Lifecycle: lifecycle.DeepCopy()}),
		withInit(v1.Container{Lifecycle: lifecycle.DeepCopy()}),
		withInit(sidecar(lifecycle.DeepCopy())),
		withEphemeral(lifecycle.DeepCopy()),
	)
}

// All features are off. Sleeps and stop signals are removed from all kinds of containers. A hook or lifecycle that
// becomes empty is set to nil. One that was empty already stays.
func TestDropFromEachKindOfContainer(t *testing.T) {
	mixed := sleep(3)
	mixed.Exec = &v1.ExecAction{Command: []string{"true"}}
	for name, c := range map[string]struct{ before, after *v1.Lifecycle }{
		"none":                       {nil, nil},
		"preStop":                    {preStop(sleep(3)), nil},
		"postStart":                  {&v1.Lifecycle{PostStart: sleep(0)}, nil},
		"both":                       {&v1.Lifecycle{PostStart: sleep(1), PreStop: sleep(2)}, nil},
		"stop signal":                {signal(v1.SIGINT), nil},
		"sleep and stop signal":      {&v1.Lifecycle{PreStop: sleep(1), StopSignal: ptr.To(v1.SIGINT)}, nil},
		"exec hook":                  {&v1.Lifecycle{PostStart: exec("true"), PreStop: sleep(2), StopSignal: ptr.To(v1.SIGINT)}, &v1.Lifecycle{PostStart: exec("true")}},
		"sleep and exec in one hook": {preStop(mixed), preStop(exec("true"))},
		"empty lifecycle":            {&v1.Lifecycle{}, &v1.Lifecycle{}},
		"empty hook":                 {preStop(&v1.LifecycleHandler{}), preStop(&v1.LifecycleHandler{})},
	} {
		dropped := specWithEachKind(c.before)
		validation.DropDisabledFields(dropped, nil, allOff())
		require.Equal(t, specWithEachKind(c.after), dropped, name)
	}
}

// Each option removes only the fields of its own feature. NoZeroSleep removes nothing, because a sleep of 0 s has the
// same field as every sleep.
func TestEachOptionDropsOneFeature(t *testing.T) {
	all := &v1.Lifecycle{PreStop: sleep(0), StopSignal: ptr.To(v1.SIGINT)}
	for name, c := range map[string]struct {
		off  validation.Options
		want *v1.Lifecycle
	}{
		"none":        {validation.Options{}, all},
		"sleep":       {validation.Options{NoSleepAction: true}, signal(v1.SIGINT)},
		"stop signal": {validation.Options{NoStopSignals: true}, preStop(sleep(0))},
		"zero":        {validation.Options{NoZeroSleep: true}, all},
	} {
		dropped := specWithEachKind(all)
		validation.DropDisabledFields(dropped, nil, c.off)
		require.Equal(t, specWithEachKind(c.want), dropped, name)
	}
}

// All features are off. If any container of the stored spec uses a feature, the fields of the feature stay. Each
// feature is checked separately.
func TestAFeatureThatTheStoredSpecUsesIsNotDropped(t *testing.T) {
	all := &v1.Lifecycle{PreStop: sleep(1), StopSignal: ptr.To(v1.SIGINT)}
	for name, c := range map[string]struct{ old, want *v1.Lifecycle }{
		"sleep":  {&v1.Lifecycle{PostStart: sleep(9)}, preStop(sleep(1))},
		"signal": {signal(v1.SIGHUP), signal(v1.SIGINT)},
		"both":   {all, all},
		"none":   {preStop(exec("true")), nil},
	} {
		old := spec(withContainer(v1.Container{}), withEphemeral(c.old))
		before, dropped := old.DeepCopy(), specWithEachKind(all)
		validation.DropDisabledFields(dropped, old, allOff())
		require.Equal(t, specWithEachKind(c.want), dropped, name)
		require.Equal(t, before, old, "the stored spec is not changed")
	}
}

// Two containers, and perhaps other objects of the caller, share a lifecycle. Dropping removes the lifecycle from the
// containers but does not change it.
func TestDropDoesNotChangeASharedLifecycle(t *testing.T) {
	hook := sleep(3)
	shared := &v1.Lifecycle{PostStart: hook, PreStop: hook, StopSignal: ptr.To(v1.SIGINT)}
	s := spec(withContainer(v1.Container{Lifecycle: shared}), withContainer(v1.Container{Lifecycle: shared}))
	validation.DropDisabledFields(s, nil, allOff())
	require.Equal(t, spec(withContainer(v1.Container{}), withContainer(v1.Container{})), s)
	require.Equal(t, &v1.Lifecycle{PostStart: sleep(3), PreStop: sleep(3), StopSignal: ptr.To(v1.SIGINT)}, shared)
}

// A nil spec must not cause a panic.
func TestDropFromANilSpec(*testing.T) {
	validation.DropDisabledFields(nil, spec(withHook(sleep(3))), allOff())
}
