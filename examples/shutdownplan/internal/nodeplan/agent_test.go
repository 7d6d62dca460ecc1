package nodeplan_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/podlist"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// world is a node with scripted containers, and the settings of its shutdown.
type world struct {
	config  plan.Config
	limit   time.Duration
	pods    []podlist.Pod
	scripts map[string]lifecycletest.Script // by the name of the pod
	// reporter is what the agent talks to beside the kills; nil: nothing.
	reporter *shutdowntest.Reporter
}

// buckets draws a configuration of up to four buckets.
func (w *world) buckets(r *rand.Rand) {
	for i := range 1 + r.IntN(4) {
		w.config.ShutdownGracePeriodByPodPriority = append(w.config.ShutdownGracePeriodByPodPriority,
			plan.PodPriorityGracePeriod{Priority: int32(i * 1000), ShutdownGracePeriodSeconds: int64(r.IntN(25))})
	}
	if r.IntN(2) == 0 {
		w.limit = time.Duration(1+r.IntN(60)) * time.Second
	}
}

// add puts a pod onto the node.
func (w *world) add(pod podlist.Pod, script lifecycletest.Script) {
	pod.Namespace, pod.HasPriority = "default", true
	pod.Name = fmt.Sprintf("pod-%d", len(w.pods))
	w.pods = append(w.pods, pod)
	w.scripts[pod.Name] = script
}

// plan is what shutdownplan says of the node.
func (w *world) plan(t *testing.T) map[string]nodeplan.Pod {
	t.Helper()
	options := plan.Options{Limit: w.limit}
	if w.reporter != nil {
		options.Hooks = plan.Hooks{Publish: true, Readiness: true, Statuses: true}
	}
	settings, err := nodeplan.NewSettings(w.config, nil, options)
	require.NoError(t, err)
	pods := map[string]nodeplan.Pod{}
	for _, bucket := range settings.Plan(&podlist.Node{Pods: w.pods}).Buckets {
		for _, pod := range bucket.Pods {
			pods[pod.Name] = pod
		}
	}
	return pods
}

// drain has an agent shut the node down, and gives its report.
func (w *world) drain(t *testing.T) shutdown.Report {
	t.Helper()
	runtime := lifecycletest.NewRuntime()
	pods := make([]*v1.Pod, len(w.pods))
	for i := range w.pods {
		pods[i] = w.pods[i].Object()
		pods[i].UID = types.UID(pods[i].Name)
		if len(pods[i].Spec.Containers) == 0 {
			pods[i].Spec.Containers = []v1.Container{{Name: "app"}}
		}
		runtime.Start(pods[i].Name, w.scripts[pods[i].Name])
	}
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: runtime, Exits: runtime})
	require.NoError(t, err)
	options := shutdown.Options{
		Config: w.config, Plan: plan.Options{Limit: w.limit},
		Pods: func() []*v1.Pod { return pods },
		Killer: podkiller.New(terminator, podkiller.Options{Containers: func(_ context.Context, pod *v1.Pod) []lifecycle.Container {
			return []lifecycle.Container{{Name: pod.Spec.Containers[0].Name, ID: pod.Name}}
		}}),
	}
	if w.reporter != nil {
		options.Reporter = w.reporter
	}
	manager, err := shutdown.NewManager(options)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{})) // a log of thousands of lines says nothing
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx) }()
	synctest.Wait() // until it runs
	require.NoError(t, manager.Trigger(shutdown.Event{}))
	<-time.After(10 * time.Minute) // of the bubble's time: all is over
	report, ok := manager.LastReport()
	require.True(t, ok)
	stop()
	require.NoError(t, <-ended)
	require.Len(t, report.Pods, len(w.pods))
	return report
}

// lag is what a drain forgives its timers when it rounds a grace to whole seconds.
const lag = 0.1

// rounds is how many random nodes are drained.
const rounds = 150

// Containers that ignore their stop signal take all the time that they have, so the agent
// does exactly what was planned: in each bucket with pods one asks for all of its time.
func TestAgentDoesWhatWasPlanned(t *testing.T) {
	for seed := range uint64(rounds) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			w := world{scripts: map[string]lifecycletest.Script{}}
			w.buckets(r)
			stubborn := lifecycletest.Script{IgnoreTerm: true}
			for i := range w.config.ShutdownGracePeriodByPodPriority {
				if r.IntN(4) == 0 {
					continue // an empty bucket, whose time rolls over
				}
				w.add(podlist.Pod{Priority: int32(i * 1000), Grace: 1000}, stubborn)
				for range r.IntN(4) {
					w.add(podlist.Pod{Priority: int32(i*1000 + r.IntN(1000)), Grace: int64(r.IntN(40))}, stubborn)
				}
			}
			planned, report := w.plan(t), w.drain(t)
			for _, pod := range report.Pods {
				p := planned[pod.Name]
				what := fmt.Sprintf("seed %d, %s of %+v within %v", seed, pod.Name, w.config.ShutdownGracePeriodByPodPriority, w.limit)
				require.Equal(t, p.GrantedSeconds, pod.GrantedSeconds, what)
				require.Equal(t, p.LatestStartSeconds, pod.Started.Sub(report.Started).Seconds(), what)
				require.Equal(t, p.Outlives, pod.Ended.IsZero(), what)
				if !p.Outlives {
					require.Equal(t, p.LatestEndSeconds, pod.Ended.Sub(report.Started).Seconds(), what)
				}
			}
		})
	}
}

// Pods that end early, hooks and a server that answers late move things, but none starts
// or ends later than planned, or gets less.
func TestAgentIsNeverLaterThanPlanned(t *testing.T) {
	for seed := range uint64(rounds) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			w := world{scripts: map[string]lifecycletest.Script{}}
			w.buckets(r)
			if r.IntN(3) > 0 {
				takes := func() time.Duration { return time.Duration(r.IntN(1500)) * time.Millisecond }
				w.reporter = &shutdowntest.Reporter{PublishTakes: takes(), MarkTakes: takes(), FlushTakes: takes()}
			}
			for range r.IntN(12) {
				pod := podlist.Pod{Priority: int32(r.IntN(5000) - 500), Grace: int64(r.IntN(40))}
				if r.IntN(2) == 0 {
					pod.Hooks = []podlist.Hook{{Container: "app", Type: podlist.HookSleep, Seconds: int64(r.IntN(30))}}
				}
				w.add(pod, lifecycletest.Script{IgnoreTerm: r.IntN(3) == 0, ExitAfterTerm: time.Duration(r.IntN(20_000)) * time.Millisecond})
			}
			planned, report := w.plan(t), w.drain(t)
			for _, pod := range report.Pods {
				p := planned[pod.Name]
				what := fmt.Sprintf("seed %d, %s of %+v within %v: %+v", seed, pod.Name, w.config.ShutdownGracePeriodByPodPriority, w.limit, p)
				require.GreaterOrEqual(t, pod.GrantedSeconds, p.GrantedSeconds, what)
				require.LessOrEqual(t, pod.GrantedSeconds, max(p.OwnSeconds, 0), what)
				require.GreaterOrEqual(t, pod.Started.Sub(report.Started).Seconds(), p.EarliestStartSeconds, what)
				require.LessOrEqual(t, pod.Started.Sub(report.Started).Seconds(), p.LatestStartSeconds, what)
				if pod.Ended.IsZero() {
					require.True(t, p.Outlives, what)
					continue
				}
				require.LessOrEqual(t, pod.Ended.Sub(report.Started).Seconds(), p.LatestEndSeconds+lag, what)
			}
		})
	}
}

// What is proposed is enough: with the proposed configuration no pod is cut short.
func TestProposedChangesAreEnough(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 3))
		w := world{scripts: map[string]lifecycletest.Script{}}
		w.buckets(r)
		for range r.IntN(12) {
			w.add(podlist.Pod{Priority: int32(r.IntN(5000) - 500), Grace: int64(r.IntN(60))}, lifecycletest.Script{})
		}
		if r.IntN(2) == 0 {
			w.config = plan.Config{}
			if r.IntN(2) == 0 {
				w.config.ShutdownGracePeriod = metav1.Duration{Duration: time.Duration(1+r.IntN(30)) * time.Second}
			}
		}
		requireEnough(t, seed, &w)
	}
}
