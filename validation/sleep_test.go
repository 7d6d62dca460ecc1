package validation_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/validation"
)

// The grace period is 30 s. A sleep may last from 0 s to 30 s, or from 1 s if the feature of zero sleeps is off.
func TestSleepSeconds(t *testing.T) {
	const (
		on  = ": must be non-negative and less than terminationGracePeriodSeconds (30)"
		off = ": must be greater than 0 and less than terminationGracePeriodSeconds (30). Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep."
	)
	zeroIsOn, zeroIsOff := validation.Options{}, validation.Options{NoZeroSleep: true}
	for _, c := range []struct {
		seconds int64
		opts    validation.Options
		want    []string
	}{
		{seconds: 0, opts: zeroIsOn, want: nil},
		{seconds: 30, opts: zeroIsOn, want: nil}, // valid, although the message says "less than"
		{seconds: 31, opts: zeroIsOn, want: []string{hookPath + ".sleep: Invalid value: 31" + on}},
		{seconds: -1, opts: zeroIsOn, want: []string{hookPath + ".sleep: Invalid value: -1" + on}},
		{seconds: math.MinInt64, opts: zeroIsOn, want: []string{hookPath + ".sleep: Invalid value: -9223372036854775808" + on}},
		{seconds: 1, opts: zeroIsOff, want: nil},
		{seconds: 30, opts: zeroIsOff, want: nil},
		{seconds: 0, opts: zeroIsOff, want: []string{hookPath + ".sleep: Invalid value: 0" + off}},
		{seconds: math.MaxInt64, opts: zeroIsOff, want: []string{hookPath + ".sleep: Invalid value: 9223372036854775807" + off}},
	} {
		requireErrors(t, validation.ValidatePodTermination(spec(withHook(sleep(c.seconds))), c.opts, field.NewPath("spec")), c.want...)
	}
}

// With a negative grace period every sleep is too long. If the grace period is missing, no sleep is too long, and only
// the missing grace period is an error.
func TestSleepWithANegativeOrMissingGracePeriod(t *testing.T) {
	requireErrors(t, validate(spec(withGrace(-1), withHook(sleep(0)))),
		hookPath+".sleep: Invalid value: 0: must be non-negative and less than terminationGracePeriodSeconds (-1)")
	none := spec(withHook(sleep(math.MaxInt64)))
	none.TerminationGracePeriodSeconds = nil
	requireErrors(t, validate(none), "spec.terminationGracePeriodSeconds: Required value")
}

// The feature of sleep hooks is off. A sleep hook is forbidden, whatever its duration. Other hooks, and a
// lifecycle without hooks, stay valid.
func TestSleepWithItsFeatureOff(t *testing.T) {
	sleepIsOff := validation.Options{NoSleepAction: true}
	errs := validation.ValidatePodTermination(spec(withHook(sleep(-1))), sleepIsOff, nil)
	requireErrors(t, errs, "containers[0].lifecycle.preStop.sleep: Forbidden: may not be set when feature gate PodLifecycleSleepAction is disabled")
	require.Nil(t, validation.ValidatePodTermination(spec(withHook(exec("true"))), sleepIsOff, nil))
	require.Nil(t, validation.ValidatePodTermination(spec(withContainer(v1.Container{Lifecycle: &v1.Lifecycle{}})), sleepIsOff, nil))
}
