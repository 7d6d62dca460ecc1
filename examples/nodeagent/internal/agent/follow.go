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

// follow applies changes of the manifests, as a kubelet does for its static pods: it
// terminates a pod without a manifest, starts a new pod, and terminates and restarts a
// pod whose manifest has changed. It does nothing while the node shuts down.
func (a *Agent) follow(ctx context.Context) {
	select {
	case <-a.manager.Ready(): // from now on it is known whether the node shuts down
	case <-ctx.Done():
		return
	}
	complaint := ""
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
			complaint = ""
			a.reconcile(ctx, specs)
			continue
		}
		if complaint != err.Error() { // the same error may come again with every change
			complaint = err.Error()
			klog.FromContext(ctx).Error(err, "Failed to read the manifests again, the pods stay as they are")
		}
	}
}

// reconcile stops the pods that are no longer wanted, waits for that, and starts the
// missing ones.
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
		switch {
		case spec == nil:
			a.opts.View.Say(p.name() + ": its manifest is gone, it is stopped.")
		case !p.wasRefused():
			a.opts.View.Say(p.name() + ": its manifest has changed, it is stopped and then started again.")
		}
		stops.Go(func() { a.drop(ctx, p, spec == nil) })
	}
	stops.Wait()
	for _, spec := range specs {
		if wanted[spec.UID] == nil || a.pods.find(spec.UID) != nil {
			continue
		}
		p := a.pods.new(spec)
		a.pods.add(p)
		a.keepMirror(ctx, p)
		a.keepers.Go(func() { a.start(ctx, p) })
	}
}

// drop terminates a pod and forgets it, either for good or because a changed pod with the
// same UID replaces it. A pod that cannot be stopped is kept.
func (a *Agent) drop(ctx context.Context, p *pod, forGood bool) {
	if err := a.retire(ctx, p, graceOf(p)); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to stop a pod whose manifest has changed", "pod", klog.KObj(p.spec))
		return
	}
	a.terminator.Forget(p.spec.UID)
	for _, c := range p.running() {
		a.backOff.Reset(string(p.spec.UID) + "/" + c.Name)
	}
	a.pods.remove(p)
	if a.opts.APIServer == nil {
		return
	}
	p.mu.Lock()
	forget := p.forget
	p.mu.Unlock()
	forget()
	if !forGood {
		return // keepMirror of the next pod replaces the mirror pod
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if err := a.opts.APIServer.RemoveMirror(ctx, p.spec); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to remove a mirror pod", "pod", klog.KObj(p.spec))
	}
}
