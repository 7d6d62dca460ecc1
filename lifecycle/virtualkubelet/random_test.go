//go:build go1.25

package virtualkubelet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
	"github.com/kubegrace/kubegrace/shutdown"
)

// randomRuntime is a runtime whose starts take random times and fail at random. It records which containers run, and each
// violation of what TestRandomOperationsKeepInvariants requires.
type randomRuntime struct {
	*scriptedRuntime

	mu          sync.Mutex
	random      *rand.Rand
	isWholePods bool               // the runtime of a fakePodRuntime: starts take no time and succeed, and no pod is adopted
	runs        map[string]*v1.Pod // by container ID
	endReported map[types.UID]bool // virtual-kubelet was told that the pod has ended
	violations  []string           // what must not happen, but has happened
}

// intn returns a random number from 0 to below-1.
func (r *randomRuntime) intn(below int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.random.IntN(below)
}

// StartContainer takes up to 3 s and fails once in ten times, unless isWholePods is set. It records a violation if an
// earlier pod with the pod's name still runs, or an earlier run of this container, or if the pod was already reported as ended.
func (r *randomRuntime) StartContainer(ctx context.Context, pod *v1.Pod, c *v1.Container) (string, error) {
	takes := time.Duration(0)
	if !r.isWholePods {
		takes = time.Duration(r.intn(3000)) * time.Millisecond
	}
	if err := times.Sleep(ctx, takes); err != nil {
		return "", err
	}
	if !r.isWholePods && r.intn(10) == 0 {
		return "", errAway
	}
	id, err := r.scriptedRuntime.StartContainer(ctx, pod, c)
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, previous := range r.runs {
		isEarlierPod := previous.Name == pod.Name && previous.UID != pod.UID
		isSameContainer := previous.UID == pod.UID && strings.HasPrefix(strings.Split(other, "/")[1], c.Name) // other is UID/NAME or UID/NAME#N
		if (isEarlierPod || isSameContainer) && !r.ended(other) {
			r.violations = append(r.violations, fmt.Sprintf("%s started while %s runs", id, other))
		}
	}
	if r.endReported[pod.UID] {
		r.violations = append(r.violations, id+" started after its end was reported")
	}
	r.runs[id] = pod
	return id, err
}

// ended reports whether a container has exited.
func (r *randomRuntime) ended(id string) bool {
	select {
	case <-r.Runtime.Exited(id):
		return true
	default:
		return false
	}
}

// running returns the IDs of the running containers.
func (r *randomRuntime) running() (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.runs {
		if !r.ended(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// check records a violation if a status that virtual-kubelet gets is wrong: a pod that has ended runs again, or a
// container runs although its pod's end is reported.
func (r *randomRuntime) check(pod *v1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	isTerminal := pod.Status.Phase == v1.PodFailed || pod.Status.Phase == v1.PodSucceeded
	if r.endReported[pod.UID] && !isTerminal {
		r.violations = append(r.violations, fmt.Sprintf("%s is reported as %s after its end", pod.UID, pod.Status.Phase))
	}
	for id, owner := range r.runs {
		if isTerminal && owner.UID == pod.UID && !r.ended(id) {
			r.violations = append(r.violations, id+" runs after its end was reported")
		}
	}
	r.endReported[pod.UID] = r.endReported[pod.UID] || isTerminal
}

// isEndReported reports whether virtual-kubelet was told that the pod has ended.
func (r *randomRuntime) isEndReported(pod *v1.Pod) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.endReported[pod.UID]
}

// podOf returns the pod of a container.
func (r *randomRuntime) podOf(id string) *v1.Pod {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.runs[id]
}

// randomNode simulates an API server with a few pod names, virtual-kubelet, and an agent.
type randomNode struct {
	*testbed

	rt         *randomRuntime
	options    func(*virtualkubelet.Options)
	podRuntime *fakePodRuntime    // nil: the provider uses rt itself
	pods       map[string]*v1.Pod // of the API server, by name
	kills      sync.WaitGroup
	uids       int
}

// newRandomNode starts an agent on a runtime of this kind (runtimeKinds).
func newRandomNode(b *testbed, kind string, seed uint64) *randomNode {
	b.rt.scripts["app"] = lifecycletest.Script{ExitAfterTerm: 7 * second}
	b.rt.scripts["log"] = lifecycletest.Script{IgnoreTerm: true}
	b.rt.exitCodes["app"] = int32(seed % 2)
	b.rt.knowsNoExitCodes = seed%3 == 0
	rt := &randomRuntime{scriptedRuntime: b.rt, random: rand.New(rand.NewPCG(seed, 1)), runs: map[string]*v1.Pod{}, endReported: map[types.UID]bool{}}
	n := &randomNode{testbed: b, rt: rt, pods: map[string]*v1.Pod{}, options: func(*virtualkubelet.Options) {}}
	if kind == "whole pods" {
		rt.isWholePods = true
		n.podRuntime = newFakePodRuntime(second)
		n.options = onFakePodRuntime(n.podRuntime)
	}
	require.NoError(b, b.Close(b.Context())) // the provider of inBubble: start makes one that uses rt
	n.start()
	return n
}

// start starts an agent: a provider, whose statuses the runtime checks.
func (n *randomNode) start() {
	n.Provider = n.newProvider(func(o *virtualkubelet.Options) { o.Runtime = n.rt }, n.options)
	n.NotifyPods(n.Context(), n.rt.check)
}

// create creates a pod with a new UID. A pod that has the name already is replaced.
func (n *randomNode) create(name string) {
	n.uids++
	pod := podOf(container("app"), container("log"))
	pod.Name, pod.UID = name, types.UID(fmt.Sprintf("%s-%d", name, n.uids))
	pod.Spec.RestartPolicy = []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyNever, v1.RestartPolicyOnFailure}[n.rt.intn(3)]
	if n.rt.intn(2) == 0 {
		pod.Spec.InitContainers = []v1.Container{sidecar("proxy")}
	}
	n.pods[name] = pod
	err := n.CreatePod(n.Context(), pod)
	require.True(n, err == nil || errdefs.IsInvalidInput(err), "%v", err)
}

// delete deletes a pod with a random grace period. The pod stays on the API server, marked as deleted.
func (n *randomNode) delete(pod *v1.Pod) {
	n.pods[pod.Name] = deleted(pod, int64(1+n.rt.intn(40)), time.Now())
	_ = n.DeletePod(n.Context(), n.pods[pod.Name])
}

// forceDelete removes a pod from the API server. As virtual-kubelet does then, it calls DeletePod with the provider's copy.
func (n *randomNode) forceDelete(pod *v1.Pod) {
	delete(n.pods, pod.Name)
	if known, err := n.GetPod(n.Context(), pod.Namespace, pod.Name); err == nil {
		_ = n.DeletePod(n.Context(), known)
	}
}

// restart restarts the agent, which adopts its running pods, and does what virtual-kubelet does at its start.
func (n *randomNode) restart() {
	known, err := n.GetPods(n.Context())
	require.NoError(n, err)
	for _, id := range n.rt.running() {
		owner := n.rt.podOf(id)
		if now, err := n.GetPod(n.Context(), "ns", owner.Name); err != nil || now.UID != owner.UID {
			return // GetPods lacks it, so it would not be adopted
		}
	}
	require.NoError(n, n.Close(n.Context()))
	n.kills.Wait()
	n.start()
	for _, pod := range known {
		if !n.rt.isWholePods && !n.rt.isEndReported(pod) {
			require.NoError(n, n.Adopt(n.Context(), virtualkubelet.Adopted{Pod: pod}))
		}
	}
	known, err = n.GetPods(n.Context())
	require.NoError(n, err)
	for _, pod := range known { // by UID, unlike virtual-kubelet, which compares only the names
		if now := n.pods[pod.Name]; now == nil || now.UID != pod.UID {
			_ = n.DeletePod(n.Context(), pod)
		}
	}
	for _, pod := range n.pods {
		switch {
		case pod.DeletionTimestamp != nil:
			_ = n.DeletePod(n.Context(), pod)
		case !n.rt.isEndReported(pod):
			_ = n.CreatePod(n.Context(), pod)
		}
	}
}

// step does one random operation.
func (n *randomNode) step() {
	name := fmt.Sprint("pod-", n.rt.intn(3))
	pod := n.pods[name]
	switch operation := n.rt.intn(12); {
	case pod == nil, operation == 0:
		n.create(name)
	case operation <= 2:
		n.delete(pod)
	case operation == 3:
		n.forceDelete(pod)
	case operation == 4:
		grace := int64(n.rt.intn(30))
		provider := n.Provider
		n.kills.Go(func() {
			_, _ = provider.KillPod(n.Context(), pod, shutdown.KillRequest{GracePeriodSeconds: ptr.To(grace)})
		})
	case operation == 5:
		n.restart()
	default:
		if running := n.rt.running(); len(running) > 0 {
			n.rt.Exit(running[n.rt.intn(len(running))])
		}
	}
}

// requireNothingIsLeft deletes all pods, waits until their terminations have ended, and requires that nothing remains.
func (n *randomNode) requireNothingIsLeft() {
	for _, pod := range n.pods {
		n.delete(pod)
	}
	wait(5 * time.Minute) // enough for each termination
	n.kills.Wait()
	require.Empty(n, n.rt.violations)
	require.Empty(n, n.rt.running())
	known, err := n.GetPods(n.Context())
	require.NoError(n, err)
	require.Empty(n, known)
	if n.podRuntime != nil {
		require.Empty(n, n.podRuntime.storedUIDs())
	}
}

// Random operations are done with pods of three names: they are created, deleted, killed and replaced, containers exit, and
// the agent restarts. Never do two pods with one name run at the same time, or two runs of one container. No container runs or
// starts after the end of its pod was reported, and nothing of a deleted pod remains.
func TestRandomOperationsKeepInvariants(t *testing.T) {
	for kind := range runtimeKinds() {
		t.Run(kind, func(t *testing.T) {
			for seed := range uint64(60) {
				inBubble(t, func(b *testbed) {
					b.Log("seed", seed)
					n := newRandomNode(b, kind, seed)
					if n.podRuntime != nil {
						defer n.podRuntime.stopping.Wait()
					}
					for range 80 {
						n.step()
						wait(time.Duration(n.rt.intn(6000)) * time.Millisecond)
						require.Empty(b, n.rt.violations)
					}
					n.requireNothingIsLeft()
				})
			}
		})
	}
}
