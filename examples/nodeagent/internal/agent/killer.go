package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// statusTimeout bounds the reading of a pod's status from the runtime, and requests to the
// API server about a pod that is stopped outside of a shutdown.
const statusTimeout = 2 * time.Second

// killer implements [shutdown.PodKiller]. Package podkiller stops the containers; the
// killer handles a start that is under way, and the sandbox.
type killer struct {
	pods    *pods
	runtime podruntime.Runtime
	// containerKiller stops the containers of a pod, idleKiller those of a pod that has
	// started none, but for one whose start is under way.
	containerKiller, idleKiller shutdown.PodKiller
}

// newKiller returns a killer that stops containers with the terminator. Its results have a
// final status only if withStatus is true, that is, if there is an API server.
func newKiller(pods *pods, runtime podruntime.Runtime, terminator *lifecycle.Terminator, withStatus bool) killer {
	k := killer{pods: pods, runtime: runtime}
	opts := podkiller.Options{Containers: k.containers}
	if withStatus {
		opts.Status = k.status
	}
	k.containerKiller = podkiller.New(terminator, opts)
	opts.Complete = true
	k.idleKiller = podkiller.New(terminator, opts)
	return k
}

// KillPod stops the containers of a pod and then removes its sandbox. If the pod is being
// started, the containers that run already are stopped.
func (k killer) KillPod(ctx context.Context, spec *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	p := k.pods.find(spec.UID)
	if p == nil {
		return shutdown.KillResult{}, fmt.Errorf("pod %s/%s is not one of this node", spec.Namespace, spec.Name)
	}
	p.beginStop(*cmp.Or(req.GracePeriodSeconds, p.spec.Spec.TerminationGracePeriodSeconds, new(int64)))
	result, err := k.kill(ctx, p, req)
	p.endStop(err)
	return result, err
}

// shorten shortens the stop of a pod by a shutdown. The pod's record of when that stop
// began and with which grace period stays as it is.
func (k killer) shorten(ctx context.Context, p *pod, req shutdown.KillRequest) error {
	_, err := k.kill(ctx, p, req)
	p.endStop(err)
	return err
}

// kill waits for the end of a start, stops the containers and removes the sandbox.
func (k killer) kill(ctx context.Context, p *pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	select {
	case <-p.startEnded:
	case <-ctx.Done():
		return shutdown.KillResult{}, fmt.Errorf("its start did not end: %w", context.Cause(ctx))
	}
	killer := k.containerKiller
	if len(p.startedContainers()) == 0 {
		killer = k.idleKiller
	}
	result, err := killer.KillPod(ctx, p.spec, req)
	if ctx.Err() != nil {
		return result, err // podkiller may still be stopping the containers
	}
	if stopErr := k.runtime.StopPod(ctx, p.spec); stopErr != nil {
		err = errors.Join(err, fmt.Errorf("failed to remove what is left of it: %w", stopErr))
	}
	return result, err
}

// containers returns the containers of a pod, for podkiller.
func (k killer) containers(_ context.Context, spec *v1.Pod) []lifecycle.Container {
	return k.pods.find(spec.UID).startedContainers()
}

// status returns the status of a pod after its containers have stopped, while the runtime
// still knows them. The phase of a pod that was finished before is final. The phase of any
// other pod is Running, until the SetStatus of the request changes it.
func (k killer) status(ctx context.Context, spec *v1.Pod) *v1.PodStatus {
	p := k.pods.find(spec.UID)
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status, err := statusOf(ctx, k.runtime, p)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to learn how a pod has ended, its final status says less", "pod", klog.KObj(spec))
	}
	if !p.wasFinishedBeforeStop() {
		status.Phase = v1.PodRunning
	}
	return status
}
