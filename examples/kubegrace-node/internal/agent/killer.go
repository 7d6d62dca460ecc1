package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// sandboxTimeout bounds the stop of a pod's sandbox. The pod counts as running until then.
const sandboxTimeout = 5 * time.Second

// killer is a [shutdown.PodKiller]. It stops the containers of a pod with package podkiller and then the pod's
// sandbox, which releases its network. It shows begin and end of each stop, and knows which are under way.
type killer struct {
	*Agent
	containers shutdown.PodKiller

	mu       sync.Mutex // guards stopping; never held while anything waits
	stopping map[types.UID]stop
}

// stop is the stop of a pod that is under way.
type stop struct {
	pod   string // NAMESPACE/NAME
	began time.Time
}

// KillPod stops the containers of a pod and then its sandbox. A sandbox that cannot be stopped is only logged,
// because the pod's containers have ended.
func (k *killer) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	if k.begin(pod) {
		k.opts.View.Stopping(pod, *req.GracePeriodSeconds)
	}
	result, err := k.containers.KillPod(ctx, pod, req)
	if err != nil && ctx.Err() != nil {
		return result, err // only this wait has ended: the stop continues
	}
	if err == nil {
		sandboxCtx, cancel := context.WithTimeout(ctx, sandboxTimeout)
		defer cancel()
		if err := k.opts.Runtime.StopPodSandbox(sandboxCtx, pod); err != nil {
			klog.FromContext(ctx).Error(err, "Failed to stop the sandbox of a pod that has ended", "pod", klog.KObj(pod))
		}
	}
	if began, isFirst := k.end(pod); isFirst {
		var ended lifecycle.Result
		if termination, known := k.terminator.Termination(pod); known {
			ended = termination.Result()
		}
		k.opts.View.Stopped(pod, time.Since(began), ended, err)
	}
	return result, err
}

// begin records that the stop of a pod is under way. It returns false if it was already.
func (k *killer) begin(pod *v1.Pod) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, underWay := k.stopping[pod.UID]; underWay {
		return false
	}
	k.stopping[pod.UID] = stop{pod.Namespace + "/" + pod.Name, time.Now()}
	return true
}

// end records that the stop of a pod is over, and returns when it began. The boolean is false if it was over
// already.
func (k *killer) end(pod *v1.Pod) (began time.Time, isFirst bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	stop, isFirst := k.stopping[pod.UID]
	delete(k.stopping, pod.UID)
	return stop.began, isFirst
}

// underWay returns the names of the pods that are being stopped, as namespace/name.
func (k *killer) underWay() (names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, stop := range k.stopping {
		names = append(names, stop.pod)
	}
	slices.Sort(names)
	return names
}
