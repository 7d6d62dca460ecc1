package nodeplan_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// scriptedNode is a node whose containers follow scripts, with the settings of its shutdown. It can be planned
// and drained, so that a test can compare the two.
type scriptedNode struct {
	config  plan.Config
	limit   time.Duration
	pods    []*v1.Pod
	scripts map[string]lifecycletest.Script // by the name of the pod
	// reporter is the agent's reporter, flusher and readiness marker; nil: it has none.
	reporter *shutdowntest.Reporter
}

// addBuckets chooses a random configuration with one to four buckets of less than 25 s. In half of all cases
// it also chooses a limit of the host, of 1 s to 60 s.
func (n *scriptedNode) addBuckets(r *rand.Rand) {
	for i := range 1 + r.IntN(4) {
		n.config.ShutdownGracePeriodByPodPriority = append(n.config.ShutdownGracePeriodByPodPriority,
			plan.PodPriorityGracePeriod{Priority: int32(i * 1000), ShutdownGracePeriodSeconds: int64(r.IntN(25))})
	}
	if r.IntN(2) == 0 {
		n.limit = time.Duration(1+r.IntN(60)) * time.Second
	}
}

// addPod adds a pod to the node, with the container app, and returns the container so that the caller can add
// a hook.
func (n *scriptedNode) addPod(priority int32, grace int64, script lifecycletest.Script) *v1.Container {
	pod := newPod(fmt.Sprintf("pod-%d", len(n.pods)), priority, grace)
	pod.UID, pod.Spec.Containers = types.UID(pod.Name), []v1.Container{{Name: "app"}}
	n.pods = append(n.pods, pod)
	n.scripts[pod.Name] = script
	return &pod.Spec.Containers[0]
}

// plan returns the planned pods by name.
func (n *scriptedNode) plan(t *testing.T) map[string]nodeplan.Pod {
	t.Helper()
	options := plan.Options{Limit: n.limit}
	if n.reporter != nil {
		options.Steps = plan.Steps{Publish: true, Readiness: true, Statuses: true}
	}
	settings, err := nodeplan.NewSettings(nodeplan.Kubegrace, n.config, nil, options)
	require.NoError(t, err)
	return podsByName(settings.Plan(&podlist.Node{Pods: n.pods}))
}

// drain lets a real agent shut the node down, and returns the agent's report. It must run in a synctest bubble.
func (n *scriptedNode) drain(t *testing.T) shutdown.Report {
	t.Helper()
	runtime := lifecycletest.NewRuntime()
	for _, pod := range n.pods {
		runtime.Start(pod, "app", pod.Name, n.scripts[pod.Name])
	}
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: runtime, Exits: runtime})
	require.NoError(t, err)
	options := shutdown.Options{
		Config: n.config, Plan: plan.Options{Limit: n.limit},
		ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return n.pods }, nil),
		Killer:   podkiller.New(terminator, podkiller.Options{}),
	}
	if n.reporter != nil {
		options.Reporter = n.reporter
	}
	manager, err := shutdown.NewManager(options)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{})) // the empty logger discards thousands of lines
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx) }()
	synctest.Wait() // until Run waits for events
	require.NoError(t, manager.Trigger(source.Event{}))
	<-time.After(10 * time.Minute) // longer than any shutdown of a node
	report, ok := manager.LastReport()
	require.True(t, ok)
	stop()
	require.NoError(t, <-ended)
	require.Len(t, report.Pods, len(n.pods))
	return report
}

// outlives reports whether a pod still ran when the drain ended and the host was released.
func outlives(pod shutdown.PodReport, report shutdown.Report) bool {
	return pod.Ended.IsZero() || pod.Ended.After(report.Ended)
}

// timerLag is by how many seconds a pod may end later than planned. When a drain rounds a grace period to
// whole seconds, it ignores that its timers fire this much too late.
const timerLag = 0.1

// randomNodes is how many random nodes each test drains.
const randomNodes = 150

// A plan is the worst case, so a drain follows it exactly if every pod uses all of its time. Here all
// containers ignore their stop signal. The first pod of each bucket asks for 1000 s, so that it uses all of
// the bucket's time. The limit is never shorter than the schedule: a shortened bucket would have a fraction of
// a second that no pod can use.
func TestAgentDoesWhatWasPlanned(t *testing.T) {
	for seed := range uint64(randomNodes) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			n := scriptedNode{scripts: map[string]lifecycletest.Script{}}
			n.addBuckets(r)
			stubborn := lifecycletest.Script{IgnoreTerm: true}
			for i := range n.config.ShutdownGracePeriodByPodPriority {
				if r.IntN(4) == 0 {
					continue // an empty bucket, whose time rolls over
				}
				n.addPod(int32(i*1000), 1000, stubborn)
				for range r.IntN(4) {
					n.addPod(int32(i*1000+r.IntN(1000)), int64(r.IntN(40)), stubborn)
				}
			}
			n.limit = max(n.limit, n.config.Schedule(true).Total())
			planned, report := n.plan(t), n.drain(t)
			for _, pod := range report.Pods {
				p := planned[pod.Name]
				message := fmt.Sprintf("seed %d, %s of %+v within %v", seed, pod.Name, n.config.ShutdownGracePeriodByPodPriority, n.limit)
				started := pod.Started.Sub(report.Started).Seconds()
				require.Equal(t, p.GrantedSeconds, pod.GrantedSeconds, message)
				require.Equal(t, p.LatestStartSeconds, started, message)
				if p.LatestEndSeconds == report.Ended.Sub(report.Started).Seconds() {
					continue // the pod ends at the moment of the release, so either order may be reported
				}
				require.Equal(t, p.Outlives, outlives(pod, report), message)
				if !p.Outlives {
					require.Equal(t, p.LatestEndSeconds, pod.Ended.Sub(report.Started).Seconds(), message)
				}
			}
		})
	}
}

// Here pods end early or late, some have hooks, and the API server is slow. Whatever they do, no pod is told
// to stop later than planned, is granted less than planned, or ends later than planned.
func TestAgentIsNeverLaterThanPlanned(t *testing.T) {
	for seed := range uint64(randomNodes) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			n := scriptedNode{scripts: map[string]lifecycletest.Script{}}
			n.addBuckets(r)
			if r.IntN(3) > 0 {
				takes := func() time.Duration { return time.Duration(r.IntN(1500)) * time.Millisecond }
				n.reporter = &shutdowntest.Reporter{PublishTakes: takes(), MarkTakes: takes(), FlushTakes: takes()}
			}
			for range r.IntN(12) {
				priority, grace := int32(r.IntN(5000)-500), int64(r.IntN(40))
				app := n.addPod(priority, grace, lifecycletest.Script{IgnoreTerm: r.IntN(3) == 0, ExitAfterTerm: time.Duration(r.IntN(20_000)) * time.Millisecond})
				if r.IntN(2) == 0 {
					app.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: int64(r.IntN(30))}}}
				}
			}
			planned, report := n.plan(t), n.drain(t)
			for _, pod := range report.Pods {
				p := planned[pod.Name]
				message := fmt.Sprintf("seed %d, %s of %+v within %v: %+v", seed, pod.Name, n.config.ShutdownGracePeriodByPodPriority, n.limit, p)
				require.GreaterOrEqual(t, pod.GrantedSeconds, p.GrantedSeconds, message)
				require.LessOrEqual(t, pod.GrantedSeconds, max(p.OwnSeconds, 0), message)
				require.LessOrEqual(t, pod.Started.Sub(report.Started).Seconds(), p.LatestStartSeconds, message)
				if outlives(pod, report) {
					require.True(t, p.Outlives || p.LatestEndSeconds == report.Ended.Sub(report.Started).Seconds(), message) // equal: the pod and the drain end at the same moment
					continue
				}
				require.LessOrEqual(t, pod.Ended.Sub(report.Started).Seconds(), p.LatestEndSeconds+timerLag, message)
			}
		})
	}
}
