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

// dropFromNew drops the disabled fields of a new pod, of which there is no stored spec.
func dropFromNew(s *v1.PodSpec, opts validation.Options) { validation.DropDisabledFields(s, nil, opts) }

// All features are off. Sleeps and stop signals are removed from all kinds of containers. A hook or lifecycle that
// becomes empty is set to nil. One that was empty already stays.
func TestDropFromEachKindOfContainer(t *testing.T) {
	mixed := sleep(3)
	mixed.Exec = &v1.ExecAction{Command: []string{"true"}}
	for name, c := range map[string]struct{ before, after *v1.Lifecycle }{
		"none":                       {before: nil, after: nil},
		"preStop":                    {before: preStop(sleep(3)), after: nil},
		"postStart":                  {before: &v1.Lifecycle{PostStart: sleep(0)}, after: nil},
		"both":                       {before: &v1.Lifecycle{PostStart: sleep(1), PreStop: sleep(2)}, after: nil},
		"stop signal":                {before: signal(v1.SIGINT), after: nil},
		"sleep and stop signal":      {before: &v1.Lifecycle{PreStop: sleep(1), StopSignal: ptr.To(v1.SIGINT)}, after: nil},
		"exec hook":                  {before: &v1.Lifecycle{PostStart: exec("true"), PreStop: sleep(2), StopSignal: ptr.To(v1.SIGINT)}, after: &v1.Lifecycle{PostStart: exec("true")}},
		"sleep and exec in one hook": {before: preStop(mixed), after: preStop(exec("true"))},
		"empty lifecycle":            {before: &v1.Lifecycle{}, after: &v1.Lifecycle{}},
		"empty hook":                 {before: preStop(&v1.LifecycleHandler{}), after: preStop(&v1.LifecycleHandler{})},
	} {
		dropped := specWithEachKind(c.before)
		dropFromNew(dropped, allOff())
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
		"none":        {off: validation.Options{}, want: all},
		"sleep":       {off: validation.Options{NoSleepAction: true}, want: signal(v1.SIGINT)},
		"stop signal": {off: validation.Options{NoStopSignals: true}, want: preStop(sleep(0))},
		"zero":        {off: validation.Options{NoZeroSleep: true}, want: all},
	} {
		dropped := specWithEachKind(all)
		dropFromNew(dropped, c.off)
		require.Equal(t, specWithEachKind(c.want), dropped, name)
	}
}

// All features are off. If any container of the stored spec uses a feature, the fields of the feature stay. Each
// feature is checked separately.
func TestAFeatureThatTheStoredSpecUsesIsNotDropped(t *testing.T) {
	all := &v1.Lifecycle{PreStop: sleep(1), StopSignal: ptr.To(v1.SIGINT)}
	for name, c := range map[string]struct{ old, want *v1.Lifecycle }{
		"sleep":  {old: &v1.Lifecycle{PostStart: sleep(9)}, want: preStop(sleep(1))},
		"signal": {old: signal(v1.SIGHUP), want: signal(v1.SIGINT)},
		"both":   {old: all, want: all},
		"none":   {old: preStop(exec("true")), want: nil},
	} {
		old := spec(withContainer(v1.Container{}), withEphemeral(c.old))
		before, dropped := old.DeepCopy(), specWithEachKind(all)
		validation.DropDisabledFields(dropped, old, allOff())
		require.Equal(t, specWithEachKind(c.want), dropped, name)
		require.Equal(t, before, old, "the stored spec is not changed")
	}
}

// Two containers share a lifecycle, perhaps with other objects of the caller. Dropping removes it from the containers, but does
// not change it.
func TestDropDoesNotChangeASharedLifecycle(t *testing.T) {
	hook := sleep(3)
	shared := &v1.Lifecycle{PostStart: hook, PreStop: hook, StopSignal: ptr.To(v1.SIGINT)}
	before, dropped := shared.DeepCopy(), spec(withContainer(v1.Container{Lifecycle: shared}), withContainer(v1.Container{Lifecycle: shared}))
	dropFromNew(dropped, allOff())
	require.Equal(t, spec(withContainer(v1.Container{}), withContainer(v1.Container{})), dropped)
	require.Equal(t, before, shared)
}

// A nil spec must not cause a panic.
func TestDropFromANilSpec(*testing.T) {
	validation.DropDisabledFields(nil, spec(withHook(sleep(3))), allOff())
}
