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

// timerLag is by how many seconds a pod may end later than planned. When a drain rounds a grace period to
// whole seconds, it ignores that its timers fire this much too late.
const timerLag = 0.1

// A plan is the worst case. For even seeds every pod uses all of its time, so a drain follows the plan exactly:
// all containers ignore their stop signal, and the first pod of each bucket asks for 1000 s, so that it uses all
// of the bucket's time. The limit is then never shorter than the schedule: a shortened bucket would have a
// fraction of a second that no pod can use. For odd seeds pods end early or late, some have hooks, and the API
// server is slow. Whatever they do, no pod is told to stop later than planned, is granted less than planned, or
// ends later than planned.
func TestAgentDoesWhatWasPlanned(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			isExact, r, n := seed%2 == 0, rand.New(rand.NewPCG(seed, 1)), scriptedNode{scripts: map[string]lifecycletest.Script{}}
			n.addBuckets(r)
			if isExact {
				n.addStubbornPods(r)
			} else {
				n.addPods(r)
			}
			planned, report := n.plan(t), n.drain(t)
			over := report.Ended.Sub(report.Started).Seconds()
			for _, pod := range report.Pods {
				p := planned[pod.Name]
				message := fmt.Sprintf("seed %d, %s of %+v within %v: %+v", seed, pod.Name, n.config.ShutdownGracePeriodByPodPriority, n.limit, p)
				started, ended := pod.Started.Sub(report.Started).Seconds(), pod.Ended.Sub(report.Started).Seconds()
				require.GreaterOrEqual(t, pod.GrantedSeconds, p.GrantedSeconds, message)
				require.LessOrEqual(t, pod.GrantedSeconds, max(p.OwnSeconds, 0), message)
				require.LessOrEqual(t, started, p.LatestStartSeconds, message)
				outlives := pod.Ended.IsZero() || pod.Ended.After(report.Ended)
				if isExact {
					require.Equal(t, p.GrantedSeconds, pod.GrantedSeconds, message)
					require.Equal(t, p.LatestStartSeconds, started, message)
				}
				switch {
				case p.LatestEndSeconds == over: // the pod ends at the moment of the release, so either order may be reported
				case outlives || isExact:
					require.Equal(t, p.Outlives, outlives, message)
				}
				if !outlives {
					require.LessOrEqual(t, ended, p.LatestEndSeconds+timerLag, message)
					require.True(t, !isExact || ended == p.LatestEndSeconds, message)
				}
			}
		})
	}
}

// addStubbornPods adds pods that use all of their time, and leaves some buckets empty, whose time rolls over.
func (n *scriptedNode) addStubbornPods(r *rand.Rand) {
	stubborn := lifecycletest.Script{IgnoreTerm: true}
	for i := range n.config.ShutdownGracePeriodByPodPriority {
		if r.IntN(4) == 0 {
			continue
		}
		n.addPod(int32(i*1000), 1000, stubborn)
		for range r.IntN(4) {
			n.addPod(int32(i*1000+r.IntN(1000)), int64(r.IntN(40)), stubborn)
		}
	}
	n.limit = max(n.limit, n.config.Schedule(true).Total())
}

// addPods adds pods that take any time, half of them with a hook, and mostly an API server that takes some.
func (n *scriptedNode) addPods(r *rand.Rand) {
	if r.IntN(3) > 0 {
		takes := func() time.Duration { return time.Duration(r.IntN(1500)) * time.Millisecond }
		n.reporter = &shutdowntest.Reporter{PublishTakes: takes(), MarkTakes: takes(), FlushTakes: takes()}
	}
	for range r.IntN(12) {
		app := n.addPod(int32(r.IntN(5000)-500), int64(r.IntN(40)), lifecycletest.Script{IgnoreTerm: r.IntN(3) == 0, ExitAfterTerm: time.Duration(r.IntN(20_000)) * time.Millisecond})
		if r.IntN(2) == 0 {
			app.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: int64(r.IntN(30))}}}
		}
	}
}
