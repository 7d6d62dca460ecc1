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
				plan.New(s, pods, plan.Options{Steps: allSteps(), Limit: time.Minute})
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

// BenchmarkPriority measures a pod that has only the name of a built-in class. "plain" checks the priority, then the two
// names.
func BenchmarkPriority(b *testing.B) {
	p := pod("p", withClass("system-node-critical"))
	b.Run("way=plain", func(b *testing.B) {
		for b.Loop() {
			plainPriority(p)
		}
	})
	b.Run("way=kubegrace", func(b *testing.B) {
		var opts plan.Options
		for b.Loop() {
			opts.Priority(p)
		}
	})
}

// plainPriority returns a pod's priority as Options.Priority does, but knows only the two built-in classes.
func plainPriority(p *v1.Pod) int32 {
	switch {
	case p.Spec.Priority != nil:
		return *p.Spec.Priority
	case p.Spec.PriorityClassName == "system-node-critical":
		return 2_000_001_000
	case p.Spec.PriorityClassName == "system-cluster-critical":
		return 2_000_000_000
	default:
		return 0
	}
}
