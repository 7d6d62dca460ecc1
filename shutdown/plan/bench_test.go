package plan_test

import (
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// BenchmarkNew plans four buckets. "plain" does the kubelet's part of this: it groups the pods and determines their
// grace periods, without times, other steps and a limit.
func BenchmarkNew(b *testing.B) {
	s := plan.Schedule{{0, 60}, {1000, 30}, {100_000, 20}, {2_000_000_000, 10}}
	for _, n := range []int{110, 10_000} {
		pods := make([]*v1.Pod, n)
		for i := range pods {
			pods[i] = pod(strconv.Itoa(i), withPriority(int32(i%4)*1000), withGrace(30))
		}
		b.Run("pods="+strconv.Itoa(n)+"/way=plain", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plainPlan(s, pods)
			}
		})
		b.Run("pods="+strconv.Itoa(n)+"/way=kubegrace", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plan.New(s, pods, plan.Options{Steps: allButPrepareAndHold(), Limit: time.Minute})
			}
		})
	}
}

// plainKill is what plainPlan plans for a pod.
type plainKill struct {
	pod   *v1.Pod
	grace int64
}

// plainPlan groups the pods by priority and determines their grace periods, as the kubelet does.
func plainPlan(s plan.Schedule, pods []*v1.Pod) [][]plainKill {
	groups := make([][]plainKill, len(s))
	for _, p := range pods {
		i := plainIndex(s, *p.Spec.Priority)
		grace := s[i].Seconds
		if own := p.Spec.TerminationGracePeriodSeconds; own != nil {
			grace = min(grace, *own)
		}
		groups[i] = append(groups[i], plainKill{p, grace})
	}
	return groups
}

// plainIndex returns the index of the last group whose priority is not higher than the given one; 0 if there is none.
func plainIndex(s plan.Schedule, priority int32) int {
	for i := len(s) - 1; i > 0; i-- {
		if s[i].Priority <= priority {
			return i
		}
	}
	return 0
}
