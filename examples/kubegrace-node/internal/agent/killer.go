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
// sandbox, which releases its network. It shows the begin and the end of each stop, and knows which pods are being
// stopped.
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
// because the pod's containers have ended. KillPod may be called for a pod while an earlier call for it still runs.
// View shows this as one stop: the first call shows its begin, and the first call that returns its end.
func (k *killer) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	if isFirst := k.begin(pod); isFirst {
		k.opts.View.Stopping(pod, *req.GracePeriodSeconds)
	}
	result, err := k.containers.KillPod(ctx, pod, req)
	if err != nil && ctx.Err() != nil {
		return result, err // the caller has stopped waiting; the containers are stopped all the same
	}
	if err == nil {
		sandboxCtx, cancel := context.WithTimeout(ctx, sandboxTimeout)
		defer cancel()
		if err := k.opts.Runtime.StopPodSandbox(sandboxCtx, pod); err != nil {
			klog.FromContext(ctx).Error(err, "Failed to stop the sandbox of a pod that has ended", "pod", klog.KObj(pod))
		}
	}
	if began, isEnd := k.end(pod); isEnd {
		var ended lifecycle.Result
		if termination, known := k.terminator.Termination(pod); known {
			ended = termination.Result()
		}
		k.opts.View.Stopped(pod, time.Since(began), ended, err)
	}
	return result, err
}

// begin records that the stop of a pod is under way. isFirst is false if another call of KillPod has recorded it.
func (k *killer) begin(pod *v1.Pod) (isFirst bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, underWay := k.stopping[pod.UID]; underWay {
		return false
	}
	k.stopping[pod.UID] = stop{pod: pod.Namespace + "/" + pod.Name, began: time.Now()}
	return true
}

// end records that the stop of a pod is over, and returns when it began. isEnd is false if another call of KillPod has
// recorded the end.
func (k *killer) end(pod *v1.Pod) (began time.Time, isEnd bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	stop, isEnd := k.stopping[pod.UID]
	delete(k.stopping, pod.UID)
	return stop.began, isEnd
}

// beingStopped returns the names of the pods that are being stopped, as namespace/name.
func (k *killer) beingStopped() (names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, stop := range k.stopping {
		names = append(names, stop.pod)
	}
	slices.Sort(names)
	return names
}
