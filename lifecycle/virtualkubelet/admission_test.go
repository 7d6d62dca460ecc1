//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// A refused pod has the kubelet's status, and nothing of it starts.
func TestARefusedPodFailsAndStartsNothing(t *testing.T) {
	inBubble(t, func(b *testbed) {
		names := b.rt.recordStarts(0)
		b.create(podOf(plain("app")))
		status := b.last().pod.Status
		require.Equal(b, v1.PodFailed, status.Phase)
		require.Equal(b, "NodeShutdown", status.Reason)
		require.Equal(b, "Pod was rejected: Pod was rejected as the node is shutting down.", status.Message)
		require.Empty(b, status.ContainerStatuses)
		require.Empty(b, names())
		require.Empty(b, b.listed())
		require.Equal(b, "NodeShutdown", b.events.All()[0].Reason)
		require.Equal(b, "Pod was rejected as the node is shutting down.", b.events.All()[0].Message)
		require.NoError(b, b.DeletePod(b.Context(), podOf(plain("app"))))
		synctest.Wait()
		require.Error(b, b.DeletePod(b.Context(), podOf(plain("app"))), "it is forgotten")
	}, func(o *virtualkubelet.Options) {
		o.Admit = func(*v1.Pod) shutdown.Admission {
			return shutdown.Admission{Reason: "NodeShutdown", Message: "Pod was rejected as the node is shutting down."}
		}
	})
}

// A pod is deleted while Admit hangs. It ends at once and is forgotten, and does not start when Admit returns.
func TestAPodCanBeDeletedWhileAdmitHangs(t *testing.T) {
	var answer chan struct{} // closed when Admit may return
	inBubble(t, func(b *testbed) {
		answer = make(chan struct{}) // in the bubble, because its goroutines wait for it
		names := b.rt.recordStarts(0)
		b.create(podOf(plain("app")))
		require.Equal(b, v1.PodPending, b.last().pod.Status.Phase)
		b.deletePod(podOf(plain("app")), 30)
		synctest.Wait()
		require.Equal(b, v1.PodFailed, b.last().pod.Status.Phase)
		require.Error(b, b.DeletePod(b.Context(), podOf(plain("app"))), "it is forgotten")
		close(answer)
		wait(second)
		require.Empty(b, names())
	}, func(o *virtualkubelet.Options) {
		o.Admit = func(*v1.Pod) shutdown.Admission {
			<-answer
			return shutdown.Admission{Admit: true}
		}
	})
}

// A panic in the embedder's code does not end the process. A pod whose Admit panics is refused. With an ExitCode that
// panics, the exit code is unknown. A panic of Status or Exited has no effect on the pod's end.
func TestPanicsOfTheEmbeddersCodeAreErrors(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*virtualkubelet.Options)
		phase  v1.PodPhase
		reason string // of the pod, or its container
	}{
		"Admit":  {func(o *virtualkubelet.Options) { o.Admit = func(*v1.Pod) shutdown.Admission { panic("Admit") } }, v1.PodFailed, "UnexpectedAdmissionError"},
		"Status": {func(o *virtualkubelet.Options) { o.Status = func(*v1.Pod) { panic("Status") } }, v1.PodSucceeded, "Completed"},
		"ExitCode": {func(o *virtualkubelet.Options) {
			o.Runtime = panicking{scriptedRuntime: o.Runtime.(*scriptedRuntime), inExitCode: true}
		}, v1.PodFailed, "ContainerStatusUnknown"},
		"Exited": {func(o *virtualkubelet.Options) {
			o.Runtime = panicking{scriptedRuntime: o.Runtime.(*scriptedRuntime), inExited: true}
		}, v1.PodSucceeded, "Completed"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.create(podOf(plain("app")))
				b.deletePod(podOf(plain("app")), 30)
				wait(10 * second)
				status := b.last().pod.Status
				require.Equal(b, test.phase, status.Phase)
				if status.Reason == "" {
					status.Reason = terminated(b, status, "app").Reason
				}
				require.Equal(b, test.reason, status.Reason)
			}, test.change)
		})
	}
}

// panicking is a runtime whose ExitCode or Exited panics.
type panicking struct {
	*scriptedRuntime

	inExitCode, inExited bool
}

func (p panicking) ExitCode(id string) (int32, bool) {
	if p.inExitCode {
		panic("ExitCode")
	}
	return p.scriptedRuntime.ExitCode(id)
}

func (p panicking) Exited(id string) <-chan struct{} {
	if p.inExited {
		panic("Exited")
	}
	return p.scriptedRuntime.Exited(id)
}

// drainedNode is a node whose provider asks a shutdown.Manager for admission, and whose pods the manager drains. Its
// host reports a pending shutdown to a restarted agent too.
type drainedNode struct {
	*testbed

	host    *shutdowntest.Host
	options func(*virtualkubelet.Options) // set the runtime
	end     func()                        // ends the agent
}

// start starts an agent: a provider, which adopts the running pods among left, and its manager.
func (n *drainedNode) start(left ...*v1.Pod) {
	var m *shutdown.Manager
	n.Provider = n.provider(n.options, func(o *virtualkubelet.Options) {
		o.Admit = func(pod *v1.Pod) shutdown.Admission { return m.Admit(pod) }
	})
	bucket := func(priority int32, seconds int64) plan.PodPriorityGracePeriod {
		return plan.PodPriorityGracePeriod{Priority: priority, ShutdownGracePeriodSeconds: seconds}
	}
	m, err := shutdown.NewManager(shutdown.Options{
		Config:   plan.Config{ShutdownGracePeriodByPodPriority: []plan.PodPriorityGracePeriod{bucket(0, 20), bucket(1000, 10), bucket(2000, 10)}},
		ListPods: n.Pods, Killer: n, Source: n.host,
	})
	require.NoError(n, err)
	for _, pod := range left {
		if pod.Status.Phase == v1.PodRunning {
			require.NoError(n, n.Adopt(n.Context(), virtualkubelet.Adopted{Pod: pod}))
		}
	}
	ctx, cancel := context.WithCancel(n.Context())
	var run sync.WaitGroup
	run.Go(func() {
		if err := m.Run(ctx); err != nil && ctx.Err() == nil {
			n.Error(err)
		}
	})
	n.end = func() {
		cancel()
		run.Wait()
	}
	<-m.Ready()
}

// pod returns a pod with a priority.
func (n *drainedNode) pod(name string, priority int32) *v1.Pod {
	pod := podOf(plain("app"))
	pod.Name, pod.UID, pod.Spec.Priority = name, types.UID(name), &priority
	return pod
}

// runtimeKinds returns the options for each kind of runtime.
func runtimeKinds() map[string]func(*virtualkubelet.Options) {
	return map[string]func(*virtualkubelet.Options){
		"containers": func(*virtualkubelet.Options) {},
		"whole pods": onFakePodRuntime(newFakePodRuntime(second)),
	}
}

// 100 pods are created during a shutdown, ten at a time, the last 50 at a restarted agent. None of them starts. The
// pods from before the shutdown are drained, and then the inhibitor lock is released.
func TestNoPodStartsInAShutdown(t *testing.T) {
	for kind, options := range runtimeKinds() {
		t.Run(kind, func(t *testing.T) {
			inBubble(t, func(b *testbed) {
				b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 4 * second}
				started := func(uid string) bool {
					_, known := b.rt.started.Load(uid + "/app")
					return known
				}
				n := &drainedNode{testbed: b, host: &shutdowntest.Host{}, options: options}
				n.start()
				for i, priority := range []int32{0, 1000, 2000} {
					b.create(n.pod(fmt.Sprintf("early-%d", i), priority))
				}
				wait(10 * second)
				created := 0
				createTen := func() {
					for range 10 {
						pod := n.pod(fmt.Sprintf("late-%d", created), int32(created%3)*1000)
						require.NoError(b, b.CreatePod(b.Context(), pod))
						created++
					}
				}
				n.host.Announce(source.Event{Deadline: time.Now().Add(60 * second)})
				synctest.Wait()
				createTen()
				for range 4 {
					wait(2 * second)
					createTen()
				}
				left, err := b.GetPods(b.Context())
				require.NoError(b, err)
				n.end()
				require.NoError(b, b.Close(b.Context()))
				if kind == "containers" {
					n.start(left...) // a Runtime lists no pods, so the agent must adopt those that run
				} else {
					n.start() // a PodRuntime lists its pods
				}
				createTen()
				for range 4 {
					wait(3 * second)
					createTen()
				}
				wait(30 * second)
				require.Equal(b, 100, created)
				for i := range created {
					require.False(b, started(fmt.Sprintf("late-%d", i)), "%d", i)
					status, err := b.GetPodStatus(b.Context(), "ns", fmt.Sprintf("late-%d", i))
					if err == nil { // the previous agent may have refused it
						require.Equal(b, v1.PodFailed, status.Phase)
					}
				}
				require.True(b, started("early-0"))
				_, released := n.host.Released()
				require.True(b, released)
				n.end()
			})
		})
	}
}

// 1,000 pods, each with a start of 2 min, are created while the shutdown begins. Each is either refused (reason
// NodeShutdown) or killed by the drain (reason Terminated): none runs on.
func TestEachPodIsEitherRefusedOrDrained(t *testing.T) {
	inBubble(t, func(b *testbed) {
		n := &drainedNode{testbed: b, host: &shutdowntest.Host{}, options: func(*virtualkubelet.Options) {}}
		b.rt.recordStarts(2 * time.Minute)
		n.start()
		var racing sync.WaitGroup
		for i := range 1000 {
			racing.Go(func() { require.NoError(b, b.CreatePod(b.Context(), n.pod(fmt.Sprintf("pod-%d", i), 0))) })
			if i == 500 {
				racing.Go(func() { n.host.Announce(source.Event{}) })
			}
		}
		racing.Wait()
		wait(3 * time.Minute)
		reasons := map[string]int{}
		for i := range 1000 {
			status, err := b.GetPodStatus(b.Context(), "ns", fmt.Sprintf("pod-%d", i))
			require.NoError(b, err)
			reasons[status.Reason]++
		}
		require.Equal(b, 1000, reasons["Terminated"]+reasons["NodeShutdown"], "%v", reasons)
		n.end()
	})
}

// 1,000 pods are created and killed at once, before or after Admit is called for them. A pod for which Admit was not
// called must not have started.
func TestAPodKilledAtOnceDoesNotStartWithoutAdmission(t *testing.T) {
	var admitted sync.Map
	inBubble(t, func(b *testbed) {
		var racing sync.WaitGroup
		for i := range 1000 {
			pod := podOf(plain("app"))
			pod.Name = fmt.Sprintf("pod-%d", i)
			pod.UID = types.UID(pod.Name)
			racing.Go(func() {
				require.NoError(b, b.CreatePod(b.Context(), pod))
				_, err := b.KillPod(b.Context(), pod, shutdown.KillRequest{})
				require.NoError(b, err)
			})
		}
		racing.Wait()
		for i := range 1000 {
			uid := types.UID(fmt.Sprintf("pod-%d", i))
			_, started := b.rt.started.Load(string(uid) + "/app")
			_, asked := admitted.Load(uid)
			require.True(b, asked || !started, uid)
		}
	}, func(o *virtualkubelet.Options) {
		o.Admit = func(pod *v1.Pod) shutdown.Admission {
			admitted.Store(pod.UID, true)
			return shutdown.Admission{Admit: true}
		}
	})
}
