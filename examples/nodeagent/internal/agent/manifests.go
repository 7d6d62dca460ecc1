package agent

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// Manifests are the files that define the pods, for an agent that follows their changes.
type Manifests struct {
	// Changed receives a value when something may have changed. It is closed when the
	// files are no longer watched.
	Changed <-chan struct{}
	// Load reads all pods again. An error leaves the pods as they are.
	Load func() ([]*v1.Pod, error)
}

// followManifests applies changes of the manifests as a kubelet does: it terminates a pod
// without a manifest, starts a new pod, and terminates and replaces a pod whose manifest
// has changed. It does nothing while the node shuts down.
func (a *Agent) followManifests(ctx context.Context) {
	select {
	case <-a.manager.Ready(): // from now on it is known whether the node shuts down
	case <-ctx.Done():
		return
	}
	lastError := ""
	for {
		select {
		case _, ok := <-a.opts.Manifests.Changed:
			if !ok {
				return
			}
		case <-ctx.Done():
			return
		}
		if a.manager.ShutdownStatus() != nil {
			continue
		}
		specs, err := a.opts.Manifests.Load()
		if err == nil {
			lastError = ""
			a.reconcile(ctx, specs)
			continue
		}
		if lastError != err.Error() { // the same error may come again with every change
			lastError = err.Error()
			klog.FromContext(ctx).Error(err, "Failed to read the manifests again, the pods stay as they are")
		}
	}
}

// reconcile terminates the pods that have no manifest any more or an older one, waits
// until they have stopped, and starts the pods that are missing.
func (a *Agent) reconcile(ctx context.Context, specs []*v1.Pod) {
	wanted := map[types.UID]*v1.Pod{}
	for _, spec := range specs {
		wanted[spec.UID] = spec
	}
	var stops sync.WaitGroup
	for _, p := range a.pods.list() {
		spec := wanted[p.spec.UID]
		if spec != nil && !p.outdated && equality.Semantic.DeepEqual(spec, p.spec) && !p.wasRefused() {
			delete(wanted, p.spec.UID)
			continue
		}
		manifestGone := spec == nil
		switch {
		case manifestGone:
			a.opts.View.Say(p.name() + ": its manifest is gone, it is stopped.")
		case !p.wasRefused():
			a.opts.View.Say(p.name() + ": its manifest has changed, it is stopped and then started again.")
		}
		stops.Go(func() { a.removePod(ctx, p, manifestGone) })
	}
	stops.Wait()
	for _, spec := range specs {
		if wanted[spec.UID] == nil || a.pods.find(spec.UID) != nil {
			continue
		}
		p := a.pods.new(spec)
		a.pods.add(p)
		a.keepMirror(ctx, p)
		a.background.Go(func() { a.start(ctx, p) })
	}
}

// removePod terminates a pod and removes it from the pods of the node. Unless its manifest
// is gone, another pod with the same UID is to replace it. A pod that cannot be stopped is
// kept.
func (a *Agent) removePod(ctx context.Context, p *pod, manifestGone bool) {
	if err := a.stopOutsideShutdown(ctx, p, p.graceSeconds()); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to stop a pod whose manifest has changed", "pod", klog.KObj(p.spec))
		return
	}
	a.terminator.Pod(p.spec).Forget()
	a.restarter.forget(p)
	a.pods.remove(p)
	if a.opts.APIServer == nil {
		return
	}
	p.mu.Lock()
	stopMirror := p.stopMirror
	p.mu.Unlock()
	stopMirror()
	if !manifestGone {
		return // keepMirror of the next pod replaces the mirror pod
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if err := a.opts.APIServer.RemoveMirror(ctx, p.spec); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to remove a mirror pod", "pod", klog.KObj(p.spec))
	}
}
