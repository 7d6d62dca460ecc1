package virtualkubelet

import (
	"context"
	"errors"
	"time"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// deleteAtRuntime waits until the pod has ended, and calls Delete until a list lacks the pod, or Delete says that it does
// not exist (ErrContainerNotFound). A new pod may then use the name. It returns false if the provider is closed before
// that.
func (w *wholePod) deleteAtRuntime() (deleted bool) {
	for !isClosed(w.pod.nameFree) {
		if !w.await(w.pod.ctx, func() bool { return !w.runs }) {
			return false
		}
		pod := w.pod.podWithStatus()
		err := w.call(w.pod.ctx, "Delete", callTimeout, func(ctx context.Context) error { return w.pod.agent.opts.Pods.Delete(ctx, pod) })
		if err == nil && w.awaitList(w.pod.ctx) != nil {
			return false
		}
		w.pod.mu.Lock()
		hasVanished := err == nil && !w.isListed
		if errors.Is(err, lifecycle.ErrContainerNotFound) || hasVanished {
			w.pod.freeName()
		}
		w.pod.mu.Unlock()
		if isClosed(w.pod.nameFree) {
			return true
		}
		select {
		case <-time.After(w.pod.agent.opts.PollInterval):
		case <-w.pod.ctx.Done():
			return false
		}
	}
	return true
}
