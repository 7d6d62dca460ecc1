package agent

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// Manifests are the files that pods come from, for an agent that goes by what changes in
// them.
type Manifests struct {
	// Changed gives a value when something may have changed, and is closed when nobody
	// looks any more.
	Changed <-chan struct{}
	// Load reads all pods again. An error leaves the pods as they are.
	Load func() ([]*v1.Pod, error)
}

// follow makes the pods those of the manifests whenever these change, as a kubelet does
// with its static pods: a pod that is gone from them is terminated, a new one started, and
// one that was changed terminated and then started as it is now. It rests while the node
// shuts down.
func (a *Agent) follow(ctx context.Context) {
	select {
	case <-a.manager.Ready(): // it is known whether the node shuts down
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
		if complaint != err.Error() { // the folder is looked at again and again
			complaint = err.Error()
			klog.FromContext(ctx).Error(err, "Failed to read the manifests again, the pods stay as they are")
		}
	}
}

// reconcile stops what is no longer wanted, waits for that, and starts what is missing.
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

// drop terminates a pod and lets go of it; for good, or because another of its identity
// takes its place. A pod that cannot be stopped stays.
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
		return // whoever keeps the mirror of the next one replaces it
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if err := a.opts.APIServer.RemoveMirror(ctx, p.spec); err != nil {
		klog.FromContext(ctx).Error(err, "Failed to remove a mirror pod", "pod", klog.KObj(p.spec))
	}
}
