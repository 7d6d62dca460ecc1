package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

const source = "kubernetes.io/config.source"

// pod makes a pod in the namespace test.
func pod(name string, changes ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: name, Annotations: map[string]string{}}}
	for _, change := range changes {
		change(p)
	}
	return p
}

// list returns its arguments.
func list(pods ...*v1.Pod) []*v1.Pod { return pods }

// withPriority sets spec.priority.
func withPriority(priority int32) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Priority = &priority }
}

// withClass sets spec.priorityClassName.
func withClass(name string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.PriorityClassName = name }
}

// withGrace sets spec.terminationGracePeriodSeconds.
func withGrace(seconds int64) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

// withAnnotation sets an annotation.
func withAnnotation(key, value string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Annotations[key] = value }
}

// The priority of a pod is spec.priority, or else that of a built-in class, or else what PriorityOf says of the class, or
// else 0. So it is for static and mirror pods, too.
func TestPriorityComesFromTheSpecTheClassOrPriorityOf(t *testing.T) {
	static := withAnnotation(source, "file")
	mirror := withAnnotation(v1.MirrorPodAnnotationKey, "hash")
	gold := plan.Options{PriorityOf: func(class string) (int32, bool) { return 500, class == "gold" }}
	var noOptions plan.Options
	for name, c := range map[string]struct {
		pod  *v1.Pod
		opts plan.Options
		want int32
	}{
		"nil pod":                        {pod: nil, opts: noOptions, want: 0},
		"neither priority nor class":     {pod: pod("p"), opts: noOptions, want: 0},
		"explicit":                       {pod: pod("p", withPriority(7)), opts: noOptions, want: 7},
		"explicit 0 of a critical class": {pod: pod("p", withPriority(0), withClass("system-node-critical"), static), opts: gold, want: 0},
		"node critical by name":          {pod: pod("p", withClass("system-node-critical")), opts: noOptions, want: 2_000_001_000},
		"cluster critical by name":       {pod: pod("p", withClass("system-cluster-critical"), static), opts: noOptions, want: 2_000_000_000},
		"PriorityOf is not asked about a built-in class": {pod: pod("p", withClass("system-node-critical")), opts: plan.Options{
			PriorityOf: func(string) (int32, bool) { return 1, true },
		}, want: 2_000_001_000},
		"a class that is known":      {pod: pod("p", withClass("gold"), static), opts: gold, want: 500},
		"a class that is not known":  {pod: pod("p", withClass("lead")), opts: gold, want: 0},
		"a class without PriorityOf": {pod: pod("p", withClass("gold")), opts: noOptions, want: 0},
		"static":                     {pod: pod("p", static), opts: gold, want: 0},
		"static of an unknown class": {pod: pod("p", static, withClass("lead")), opts: gold, want: 0},
		"mirror":                     {pod: pod("p", mirror), opts: gold, want: 0},
	} {
		require.Equal(t, c.want, c.opts.Priority(c.pod), name)
	}
}
