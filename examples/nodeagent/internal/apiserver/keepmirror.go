package apiserver

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

const (
	// resyncInterval is how often KeepMirror compares a mirror with its pod although
	// nothing has changed here: somebody may have deleted the mirror. It is the
	// kubelet's.
	resyncInterval = 10 * time.Second
	// syncTimeout bounds one comparison with all its requests.
	syncTimeout = 10 * time.Second
)

// Observed tells [Client.KeepMirror] how the agent sees a static pod. Package agent
// implements it.
type Observed interface {
	// Ending reports whether the pod or its node is being shut down. From then on the
	// shutdown owns the mirror. It does not block.
	Ending() bool
	// Status returns the pod's phase and container statuses, or nil if the pod has not
	// got that far. The mirror then has the status that the API server gave it. ctx
	// bounds the call.
	Status(ctx context.Context) (*v1.PodStatus, error)
	// Changed returns a channel that is closed when Status may return something new, or
	// nil if no change is expected. It never returns a closed channel twice.
	Changed() <-chan struct{}
}

// KeepMirror creates the mirror of a static pod, replaces an outdated one, and keeps its
// status up to date, until ctx ends. While the pod is ending it does nothing.
func (c *Client) KeepMirror(ctx context.Context, pod *v1.Pod, observed Observed) {
	c.events.addStaticPod(pod)
	k := &mirrorKeeper{Client: c, pod: pod, observed: observed}
	for pauses := retryPauses().DelayFunc(); ctx.Err() == nil; {
		changed := observed.Changed()
		pause, err := resyncInterval, k.syncMirror(ctx)
		switch {
		case err == nil:
			pauses, k.lastLogged = retryPauses().DelayFunc(), ""
		case ctx.Err() == nil:
			pause = pauses()
			k.logFailure(ctx, err)
		}
		waitForChange(ctx, changed, pause)
	}
}

// logFailure logs an error. It logs it at V(1) if it is the same as the last one, a
// conflict with another writer, which is expected, or an unreachable server, which every
// pod would log.
func (k *mirrorKeeper) logFailure(ctx context.Context, err error) {
	logger := klog.FromContext(ctx).WithValues("pod", klog.KObj(k.pod))
	answered := errors.As(err, new(*apierrors.StatusError))
	refused := answered && !apierrors.IsConflict(err) || errors.Is(err, errNoMirror)
	if !refused || k.lastLogged == err.Error() {
		logger.V(1).Info("Failed to keep a mirror pod, trying again", "err", err)
		return
	}
	k.lastLogged = err.Error()
	logger.Error(err, "Failed to keep a mirror pod, trying again")
}

// waitForChange returns when changed is closed, the pause is over or ctx has ended.
func waitForChange(ctx context.Context, changed <-chan struct{}, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// retryPauses returns the growing pauses between attempts that fail, at most
// resyncInterval.
func retryPauses() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: resyncInterval}
}
