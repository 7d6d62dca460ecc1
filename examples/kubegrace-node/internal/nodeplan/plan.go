package nodeplan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/kubeletconfig"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/validation"
)

// OfAgent returns the plan of a running agent as a document. A limit of 0 means that the host sets no limit.
func OfAgent(config plan.Config, limit time.Duration, p plan.Plan) Document {
	s := Settings{agent: Kubegrace, config: kubeletconfig.Config{Shutdown: config}, options: plan.Options{Limit: limit}}
	n := s.nodeOf(podlist.ThisNode, p)
	n.setWarnings(p.Warnings)
	h := s.Header()
	h.NeededSeconds = p.Wanted.Total().Seconds()
	return documentOf(h, []Node{n})
}

// Plan plans the shutdown of a node, with warnings about what the plan cannot keep. A kubelet ignores the priority classes of
// static pods, so that its plan is made without them (withoutStaticClasses).
func (s Settings) Plan(node *podlist.Node) Node {
	pods := node.Pods
	if s.agent == Kubelet {
		pods = withoutStaticClasses(pods)
	}
	p := s.planPods(pods)
	n := s.nodeOf(node.Name, p)
	switch {
	case s.isOff:
		n.Warnings = []string{"the graceful node shutdown is off: the pods are killed with the host, which is not asked to wait"}
	case s.takesNoLock():
		n.Warnings = []string{"the kubelet takes no lock: the pods are killed with the host, without preStop hooks and in no order"}
	case s.agent == Kubelet:
		n.setWarnings(append(p.Warnings, staticWarnings(node)...))
	default:
		n.setWarnings(validation.WarnNodeShutdown(s.config.Shutdown, pods, s.options))
	}
	return n
}

// planPods plans the drain of the pods of one node.
func (s Settings) planPods(pods []*v1.Pod) plan.Plan {
	switch {
	case !s.hostWaits(): // the pods are killed with the host, so each one gets 0 s
		const noTime = -1 // 0 would mean that there is no limit
		return plan.New(s.schedule, pods, plan.Options{PriorityOf: s.options.PriorityOf, Limit: noTime})
	case s.agent == Kubelet:
		return s.kubeletPlan(pods)
	default:
		return plan.New(s.schedule, pods, s.options)
	}
}

// nodeOf converts the plan of a node to a [Node], with the sums over its pods.
func (s Settings) nodeOf(name string, p plan.Plan) Node {
	n := Node{Name: name, ReleaseSeconds: p.Release.Seconds(), Buckets: make([]Bucket, 0, len(p.Buckets))}
	for _, planned := range p.Buckets {
		b := Bucket{
			Priority: planned.Priority, ConfiguredSeconds: planned.WantedSeconds, Seconds: planned.Seconds,
			StartSeconds: planned.Start.Seconds(), EndSeconds: planned.End.Seconds(), Pods: make([]Pod, 0, len(planned.Pods)),
		}
		for _, pod := range planned.Pods {
			converted := s.podOf(pod, p.Release)
			b.Pods = append(b.Pods, converted)
			n.PodCount++
			if converted.CutShort {
				n.CutShort++
			}
			n.LostSeconds = saturatingAdd(n.LostSeconds, converted.lostSeconds())
		}
		n.Buckets = append(n.Buckets, b)
	}
	return n
}

// podOf converts the plan of a pod to a [Pod]. release is when the host may go down: Outlives marks a pod that may still run
// then.
func (s Settings) podOf(planned plan.PodPlan, release time.Duration) Pod {
	p := Pod{
		Namespace: planned.Pod.Namespace, Name: planned.Pod.Name, workload: workloadOf(planned.Pod),
		Priority: planned.Priority, PrioritySource: s.prioritySource(planned.Pod),
		OwnSeconds: planned.WantedSeconds, GrantedSeconds: planned.GrantedSeconds,
		LatestStartSeconds: planned.Start.Seconds(),
		LatestEndSeconds:   planned.End.Seconds(),
		Outlives:           planned.End > release,
		CutShort:           planned.Truncated(),
		Hooks:              hooksOf(planned.Pod, max(planned.GrantedSeconds, graceperiod.MinimumPodSeconds)),
		Warnings:           validation.WarnPodTermination(&planned.Pod.Spec, field.NewPath("spec")),
	}
	if !s.hostWaits() { // the pod is killed together with the host: the usual 2 s to stop do not apply
		p.LatestEndSeconds, p.Outlives = 0, false
	}
	for _, hook := range p.Hooks {
		p.CutShort = p.CutShort || hook.CutShort
	}
	return p
}

// pods returns the pods of all buckets, in the order in which they are drained.
func (n *Node) pods() (all []*Pod) {
	for _, bucket := range n.Buckets {
		for i := range bucket.Pods {
			all = append(all, &bucket.Pods[i])
		}
	}
	return all
}

// setWarnings sets the warnings of a node: those of its plan, and one about pods that may still run when the lock
// is released. Warnings about single buckets are left out, because the buckets and pods of the document say the
// same.
func (n *Node) setWarnings(warnings []string) {
	isAboutBucket := func(warning string) bool { return strings.HasPrefix(warning, "bucket ") }
	n.Warnings = slices.DeleteFunc(slices.Clone(warnings), isAboutBucket)
	var last *Pod
	count := 0
	for _, pod := range n.pods() {
		if !pod.Outlives {
			continue
		}
		count++
		if last == nil || pod.LatestEndSeconds > last.LatestEndSeconds {
			last = pod
		}
	}
	if count > 0 {
		n.Warnings = append(n.Warnings, fmt.Sprintf("pods that may still run when the inhibitor lock is released after %s: %d, among them %s until %s",
			duration.Seconds(n.ReleaseSeconds), count, last.FullName(), duration.Seconds(last.LatestEndSeconds)))
	}
}

// HasGuessedPriorities reports whether the priority of at least one pod is guessed.
func (n Node) HasGuessedPriorities() bool {
	return slices.ContainsFunc(n.pods(), (*Pod).PriorityIsGuessed)
}

// PriorityIsGuessed reports whether PrioritySource is a guess.
func (p *Pod) PriorityIsGuessed() bool { return strings.HasPrefix(p.PrioritySource, podinfo.Guessed) }

// lostSeconds returns the part of its grace period that the pod does not get.
func (p *Pod) lostSeconds() int64 { return max(p.OwnSeconds-p.GrantedSeconds, 0) }

// saturatingAdd returns a + b, or math.MaxInt64 if the sum overflows, because a pod may have any grace period. a and b
// are 0 or more.
func saturatingAdd(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// FullName returns the namespace and the name of the pod, separated by a slash.
func (p *Pod) FullName() string { return p.Namespace + "/" + p.Name }

// Text describes a hook to people: its type, its container and, if known, how long it sleeps.
func (h Hook) Text() string {
	if h.Seconds == nil {
		return fmt.Sprintf("%s hook of container %s", h.Type, h.Container)
	}
	return fmt.Sprintf("%s hook of container %s, %s", h.Type, h.Container, duration.Seconds(*h.Seconds))
}

// hooksOf returns the preStop hooks of all containers and sidecars of a pod. A hook that sleeps for longer than
// graceSeconds is marked as cut short.
func hooksOf(pod *v1.Pod, graceSeconds int64) (hooks []Hook) {
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if c.Lifecycle == nil || c.Lifecycle.PreStop == nil {
			continue
		}
		hook := Hook{Container: c.Name}
		switch preStop := c.Lifecycle.PreStop; {
		case preStop.Exec != nil:
			hook.Type, hook.Seconds = "exec", sleepSeconds(preStop.Exec.Command)
		case preStop.HTTPGet != nil:
			hook.Type = "httpGet"
		case preStop.TCPSocket != nil:
			hook.Type = "tcpSocket"
		case preStop.Sleep != nil:
			hook.Type, hook.Seconds = "sleep", &preStop.Sleep.Seconds
		default:
			continue
		}
		hook.CutShort = hook.Seconds != nil && *hook.Seconds > graceSeconds
		hooks = append(hooks, hook)
	}
	return hooks
}

// sleepSeconds returns for how many seconds the command of a hook sleeps, so that the plan can tell whether the hook fits:
// the first number directly after a word "sleep", also in a shell's script such as "nginx -s quit; sleep 20". If there is
// none, it returns nil: how long the hook takes is not known.
func sleepSeconds(command []string) *int64 {
	words := strings.Fields(strings.Join(command, " "))
	for i, word := range words[:max(len(words)-1, 0)] {
		if word != "sleep" && !strings.HasSuffix(word, "/sleep") {
			continue
		}
		number := strings.TrimSuffix(strings.TrimRight(words[i+1], ";&"), "s")
		if seconds, err := strconv.ParseInt(number, 10, 64); err == nil && seconds >= 0 {
			return &seconds
		}
	}
	return nil
}
