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
	// resyncInterval is how often a mirror is compared with its pod when nothing has
	// happened here: somebody may have deleted it. The kubelet's.
	resyncInterval = 10 * time.Second
	// syncTimeout bounds one comparison, with all that it asks of the server.
	syncTimeout = 10 * time.Second
)

// Observed is a static pod, as its agent sees it.
type Observed interface {
	// Ending tells whether the pod, or its node, is being shut down: its mirror then
	// belongs to the shutdown. It does not block.
	Ending() bool
	// Status is the pod's phase and what is known of its containers; nil: the pod has
	// not got so far, and its mirror is as the API server makes it. ctx bounds it.
	Status(ctx context.Context) (*v1.PodStatus, error)
	// Changed is closed once Status may be another one than now; nil: nothing is to be
	// expected. One that is closed already is not given again.
	Changed() <-chan struct{}
}

// KeepMirror creates the mirror of a static pod, replaces one of an earlier time and
// keeps its status, until ctx ends. While the pod is ending it does nothing at all.
func (c *Client) KeepMirror(ctx context.Context, pod *v1.Pod, observed Observed) {
	c.events.know(pod)
	k := &keeper{Client: c, pod: pod, observed: observed}
	for delays := retries().DelayFunc(); ctx.Err() == nil; {
		changed := observed.Changed()
		pause, err := resyncInterval, k.sync(ctx)
		switch {
		case err == nil:
			delays, k.told = retries().DelayFunc(), ""
		case ctx.Err() == nil:
			pause = delays()
			k.complain(ctx, err)
		}
		await(ctx, changed, pause)
	}
}

// complain logs what went wrong, once for each thing. That the server cannot be reached
// is no news with every pod, and that another one has written first is none at all.
func (k *keeper) complain(ctx context.Context, err error) {
	logger := klog.FromContext(ctx).WithValues("pod", klog.KObj(k.pod))
	answered := errors.As(err, new(*apierrors.StatusError))
	refused := answered && !apierrors.IsConflict(err) || errors.Is(err, errNoMirror)
	if !refused || k.told == err.Error() {
		logger.V(1).Info("Failed to keep a mirror pod, trying again", "err", err)
		return
	}
	k.told = err.Error()
	logger.Error(err, "Failed to keep a mirror pod, trying again")
}

// await waits for a change, but no longer than a pause.
func await(ctx context.Context, changed <-chan struct{}, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// retries are the pauses after what went wrong, up to that of a resync.
func retries() wait.Backoff {
	return wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: resyncInterval}
}
