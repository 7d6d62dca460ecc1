//go:build go1.25

package validation_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/validation"
)

// randomSpecs generates random specs, valid or not. Each method returns a random value of its name, or nil. Most
// fields are set with a probability of one half, and most numbers are edge values of a rule.
type randomSpecs struct{ *rand.Rand }

func (p randomSpecs) chance() bool { return p.IntN(2) == 0 }

func (p randomSpecs) seconds() int64 {
	edges := []int64{0, 1, 2, 29, 30, 31, -1, math.MaxInt64, math.MinInt64}
	return edges[p.IntN(len(edges))]
}

func (p randomSpecs) grace() *int64 {
	if p.chance() {
		return nil
	}
	return ptr.To(p.seconds())
}

func (p randomSpecs) hook() *v1.LifecycleHandler {
	if p.chance() {
		return nil
	}
	h := &v1.LifecycleHandler{}
	if p.IntN(4) == 0 {
		h.Exec = &v1.ExecAction{Command: make([]string, p.IntN(2))}
	}
	if p.IntN(4) == 0 {
		h.HTTPGet = &v1.HTTPGetAction{Port: intstr.IntOrString{Type: intstr.Type(p.IntN(3)), IntVal: p.Int32(), StrVal: "web"}}
		h.HTTPGet.HTTPHeaders = make([]v1.HTTPHeader, p.IntN(2))
	}
	if p.IntN(4) == 0 {
		h.TCPSocket = &v1.TCPSocketAction{Port: intstr.FromInt32(p.Int32())}
	}
	if p.IntN(2) == 0 {
		h.Sleep = &v1.SleepAction{Seconds: p.seconds()}
	}
	return h
}

func (p randomSpecs) lifecycle() *v1.Lifecycle {
	if p.IntN(3) == 0 {
		return nil
	}
	l := &v1.Lifecycle{PostStart: p.hook(), PreStop: p.hook()}
	if p.chance() {
		l.StopSignal = ptr.To([]v1.Signal{v1.SIGTERM, v1.SIGHUP, "TERM", ""}[p.IntN(4)])
	}
	return l
}

func (p randomSpecs) probe() *v1.Probe {
	if p.chance() {
		return nil
	}
	return &v1.Probe{TerminationGracePeriodSeconds: p.grace()}
}

func (p randomSpecs) container() v1.Container {
	c := v1.Container{
		Name:           []string{"a", "b", ""}[p.IntN(3)],
		Lifecycle:      p.lifecycle(),
		LivenessProbe:  p.probe(),
		ReadinessProbe: p.probe(),
		StartupProbe:   p.probe(),
	}
	if p.chance() {
		c.RestartPolicy = ptr.To([]v1.ContainerRestartPolicy{v1.ContainerRestartPolicyAlways, "Never"}[p.IntN(2)])
	}
	return c
}

func (p randomSpecs) spec() *v1.PodSpec {
	s := &v1.PodSpec{TerminationGracePeriodSeconds: p.grace()}
	if p.chance() {
		s.OS = &v1.PodOS{Name: []v1.OSName{v1.Linux, v1.Windows, "", "plan9"}[p.IntN(4)]}
	}
	for range p.IntN(3) {
		s.Containers = append(s.Containers, p.container())
	}
	for range p.IntN(3) {
		s.InitContainers = append(s.InitContainers, p.container())
	}
	for range p.IntN(2) {
		withEphemeral(p.lifecycle())(s)
	}
	return s
}

// randomSpec returns the random spec of a seed.
func randomSpec(seed uint64) *v1.PodSpec { return randomSpecs{rand.New(rand.NewPCG(seed, 0))}.spec() }

// options returns options in which bit 1 of off switches sleeps off, bit 2 sleeps of 0 s, and bit 4 stop signals.
func options(off uint8) validation.Options {
	return validation.Options{NoSleepAction: off&1 != 0, NoZeroSleep: off&2 != 0, NoStopSignals: off&4 != 0}
}

// ValidatePodTermination does not change the spec and returns no error twice. With all features on, or for the update of a
// stored spec, it returns no more errors than with some features off. For the update of a spec by itself it returns only
// the errors that it returns with all features on.
func FuzzValidatePodTermination(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint8(0))
	f.Add(uint64(3), uint64(3), uint8(7))
	f.Fuzz(func(t *testing.T, seed, oldSeed uint64, off uint8) {
		s, old := randomSpec(seed), randomSpec(oldSeed)
		before, path := s.DeepCopy(), field.NewPath("spec")
		errs := validation.ValidatePodTermination(s, options(off), path)
		withAllOn := validation.ValidatePodTermination(s, validation.Options{}, path)
		require.LessOrEqual(t, len(withAllOn), len(errs), "%v\n%v", withAllOn, errs)
		requireNoDuplicates(t, errs)

		asUpdate := validation.ValidatePodTermination(s, options(off).ForUpdate(old), path)
		require.LessOrEqual(t, len(asUpdate), len(errs))
		asUpdateOfItself := validation.ValidatePodTermination(s, options(off).ForUpdate(s), path)
		require.Len(t, asUpdateOfItself, len(withAllOn), "the features that a stored spec uses are on")
		validation.WarnPodTermination(s, path)
		require.Equal(t, before, s)
	})
}

// requireNoDuplicates requires that no error is returned twice.
func requireNoDuplicates(t *testing.T, errs field.ErrorList) {
	t.Helper()
	seen := map[string]bool{}
	for _, err := range errs {
		require.False(t, seen[err.Error()], "twice: %v", err)
		seen[err.Error()] = true
	}
}

// DropDisabledFields is idempotent, and its result is never rejected because a feature is off. It drops nothing if sleep hooks
// and stop signals are on.
func FuzzDropDisabledFields(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint8(0))
	f.Add(uint64(3), uint64(3), uint8(7))
	f.Fuzz(func(t *testing.T, seed, oldSeed uint64, off uint8) {
		s, old := randomSpec(seed), randomSpec(oldSeed)
		if oldSeed%3 == 0 {
			old = nil // the pod is new
		}
		given, before, opts := s.DeepCopy(), old.DeepCopy(), options(off)
		validation.DropDisabledFields(s, old, opts)
		require.Equal(t, before, old, "the stored spec is not changed")

		once := s.DeepCopy()
		validation.DropDisabledFields(s, old, opts)
		require.Equal(t, once, s)

		for _, err := range validation.ValidatePodTermination(s, opts.ForUpdate(old), nil) {
			require.NotContains(t, err.Detail, "feature gate PodLifecycleSleepAction is")
			require.NotContains(t, err.Detail, "feature gate ContainerStopSignals is")
		}
		if !opts.NoSleepAction && !opts.NoStopSignals {
			require.Equal(t, given, s, "nothing is dropped")
		}
		// ForUpdate switches on the features that s uses: it uses none any more.
		dropFromNew(s, allOff())
		require.Equal(t, allOff(), allOff().ForUpdate(s), "no sleep and no stop signal remains")
	})
}

// No spec that was decoded from JSON makes a function of the package panic.
func FuzzDecodedSpec(f *testing.F) {
	data, err := json.Marshal(tenContainers())
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte(`{"containers":[{"lifecycle":{"preStop":{"httpGet":{"port":"\u0000","httpHeaders":[{}]}}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &v1.PodSpec{}
		if json.Unmarshal(data, s) != nil {
			return
		}
		errs := validation.ValidatePodTermination(s, validation.Options{}.ForUpdate(s), nil)
		require.Equal(t, len(errs) > 0, errs.ToAggregate() != nil, "ToAggregate formats all errors")
		validation.WarnPodTermination(s, nil)
		// ForUpdate switches on the features that s uses: it uses none any more.
		dropFromNew(s, allOff())
		require.Equal(t, allOff(), allOff().ForUpdate(s), "no sleep and no stop signal remains")
	})
}

// Two buckets are valid if their seconds are not negative, the sum fits into a time.Duration, and the priorities differ. Then
// the schedule lasts for the sum. Otherwise there is an error. WarnNodeShutdown does not panic in either case.
func FuzzValidateNodeShutdown(f *testing.F) {
	f.Add(int32(0), int64(10), int32(0), int64(20), int64(math.MaxInt64))
	f.Add(int32(math.MinInt32), int64(math.MinInt64), int32(math.MaxInt32), int64(math.MaxInt64), int64(-1))
	f.Add(int32(0), mostSeconds, int32(1), int64(0), int64(0))
	f.Fuzz(func(t *testing.T, priorityA int32, secondsA int64, priorityB int32, secondsB, grace int64) {
		cfg := byPriority(bucket{priorityA, secondsA}, bucket{priorityB, secondsB})
		err := validation.ValidateNodeShutdown(cfg, validation.Options{})
		noneIsNegative := secondsA >= 0 && secondsB >= 0
		sumFits := secondsA <= mostSeconds && secondsB <= mostSeconds-secondsA
		isValid := noneIsNegative && sumFits && priorityA != priorityB
		require.Equal(t, isValid, err == nil, "%v", err)
		if isValid {
			const isListGateOn = true
			require.Equal(t, secondsA+secondsB, int64(cfg.Schedule(isListGateOn).Total()/time.Second))
		}
		pods := []*v1.Pod{podOfClass("a", "system-node-critical", secondsA), podOfClass("b", "", grace), nil}
		validation.WarnNodeShutdown(cfg, pods, plan.Options{Limit: time.Duration(grace)})
	})
}
