package nodeplan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/validation"
)

// Plan plans the shutdown of a node.
func (s Settings) Plan(node *podlist.Node) Node {
	pods := make([]*v1.Pod, len(node.Pods))
	sources := make(map[*v1.Pod]*podlist.Pod, len(pods))
	for i := range node.Pods {
		pods[i] = s.object(&node.Pods[i])
		sources[pods[i]] = &node.Pods[i]
	}
	p := s.plan(pods)
	n := Node{Name: node.Name, PodCount: len(pods), ReleaseSeconds: p.Release.Seconds(), Buckets: make([]Bucket, 0, len(p.Buckets))}
	for _, planned := range p.Buckets {
		b := Bucket{
			Priority: planned.Priority, ConfiguredSeconds: planned.WantedSeconds, Seconds: planned.Seconds,
			StartSeconds: planned.Start.Seconds(), EndSeconds: planned.End.Seconds(), Pods: make([]Pod, 0, len(planned.Pods)),
		}
		for _, pod := range planned.Pods {
			b.Pods = append(b.Pods, s.planPod(pod, sources[pod.Pod], planned.Seconds, p.Release))
		}
		n.addLosses(b.Pods)
		n.Buckets = append(n.Buckets, b)
	}
	switch {
	case s.off:
		n.Warnings = []string{"the graceful node shutdown is off: the pods are killed with the host, which is not asked to wait"}
		return n
	case s.noLock():
		n.Warnings = []string{"the kubelet takes no lock: the pods are killed with the host, without preStop hooks and in no order"}
		return n
	case s.agent == Kubelet:
		n.Warnings = append(p.Warnings, staticWarnings(node)...)
	default:
		n.Warnings = validation.WarnNodeShutdown(s.config, pods, s.options)
	}
	n.Warnings = slices.DeleteFunc(n.Warnings, func(warning string) bool { return strings.HasPrefix(warning, "bucket ") }) // the buckets and pods say the same
	n.Warnings = append(n.Warnings, n.outlivesWarning()...)
	return n
}

// plan plans a drain of pods by the agent.
func (s Settings) plan(pods []*v1.Pod) plan.Plan {
	switch {
	case s.off || s.noLock():
		return plan.New(s.schedule, pods, plan.Options{PriorityOf: s.options.PriorityOf, Limit: -1}) // the agent does nothing, and the host does not wait
	case s.agent == Kubelet:
		return s.kubeletPlan(pods)
	default:
		return plan.New(s.schedule, pods, s.options)
	}
}

// outlivesWarning returns a warning if pods may still run when the host is released.
func (n *Node) outlivesWarning() []string {
	var last *Pod
	count := 0
	for _, bucket := range n.Buckets {
		for i := range bucket.Pods {
			pod := &bucket.Pods[i]
			if !pod.Outlives {
				continue
			}
			count++
			if last == nil || pod.LatestEndSeconds > last.LatestEndSeconds {
				last = pod
			}
		}
	}
	if count == 0 {
		return nil
	}
	return []string{fmt.Sprintf("pods that may still run when the host is let go after %s: %d, among them %s until %s",
		duration.Seconds(n.ReleaseSeconds), count, last.FullName(), duration.Seconds(last.LatestEndSeconds))}
}

// addLosses adds the losses of a bucket's pods to those of the node.
func (n *Node) addLosses(pods []Pod) {
	for i := range pods {
		if pods[i].CutShort {
			n.CutShort++
		}
		n.LostSeconds = saturatingAdd(n.LostSeconds, pods[i].lostSeconds())
	}
}

// lostSeconds returns what the pod asks for and does not get.
func (p *Pod) lostSeconds() int64 { return max(p.OwnSeconds-p.GrantedSeconds, 0) }

// planPod returns the planned end of a pod, which was made from source. bucketSeconds is the
// time of its bucket, and release is when the host is released.
func (s Settings) planPod(planned plan.PodPlan, source *podlist.Pod, bucketSeconds int64, release time.Duration) Pod {
	p := Pod{
		source: source, Namespace: source.Namespace, Name: source.Name, Priority: planned.Priority, PrioritySource: s.prioritySource(source),
		OwnSeconds: planned.WantedSeconds, GrantedSeconds: planned.GrantedSeconds,
		LatestStartSeconds: planned.Start.Seconds(),
		LatestEndSeconds:   planned.End.Seconds(),
		Outlives:           planned.End > release,
		CutShort:           planned.Truncated(),
		Warnings:           validation.WarnPodTermination(&planned.Pod.Spec, field.NewPath("spec")),
	}
	switch {
	case s.off || s.noLock():
		p.LatestEndSeconds, p.Outlives = 0, false
		if planned.Truncated() {
			p.Why = "The graceful node shutdown is off."
		}
		if planned.Truncated() && !s.off {
			p.Why = "The kubelet takes no lock."
		}
	case planned.Truncated():
		p.Why = fmt.Sprintf("It asks for %s, and its bucket has %s.", duration.Seconds(planned.WantedSeconds), duration.Seconds(bucketSeconds))
	}
	for _, hook := range source.Hooks() {
		h := Hook{Container: hook.Container, Type: hook.Type}
		if hook.Seconds >= 0 {
			h.Seconds = &hook.Seconds
			h.CutShort = hook.Seconds > max(planned.GrantedSeconds, graceperiod.MinimumPodSeconds)
		}
		p.CutShort = p.CutShort || h.CutShort
		p.Hooks = append(p.Hooks, h)
	}
	return p
}

// saturatingAdd returns a + b, at most math.MaxInt64. Both are 0 or more.
func saturatingAdd(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// FullName returns the namespace and the name of the pod, separated by a slash.
func (p *Pod) FullName() string { return p.Namespace + "/" + p.Name }

// Text returns the type, the container and the length of a hook, for people.
func (h Hook) Text() string {
	if h.Seconds == nil {
		return fmt.Sprintf("%s hook of container %s", h.Type, h.Container)
	}
	return fmt.Sprintf("%s hook of container %s, %s", h.Type, h.Container, duration.Seconds(*h.Seconds))
}
