package virtualkubelet

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// orphanTimeout is how long an orphan may run: a pod that is listed but was never passed to CreatePod. It is
// then stopped. virtual-kubelet calls CreatePod within this time for every pod that the API server has.
const orphanTimeout = time.Minute

// poll gets one list, checks it and passes it to the records. A list with an invalid pod is an error as a whole,
// because a pod that is missing from a list counts as ended. began is when the list begins.
func (p *poller) poll(ctx context.Context, began time.Time) error {
	number := p.beginList()
	var list []*v1.Pod
	err := p.agent.callWithin(ctx, "Statuses", types.NamespacedName{}, callTimeout, p.lastFailure(), func(ctx context.Context) (err error) {
		list, err = p.agent.opts.Pods.Statuses(ctx)
		return err
	})
	if err != nil {
		return err
	}
	listed := make(map[types.UID]*v1.Pod, len(list))
	for i, pod := range list {
		switch {
		case pod == nil:
			return fmt.Errorf("the list of Statuses: pod %d is nil", i)
		case pod.UID == "":
			return fmt.Errorf("the list of Statuses: pod %s: UID: must be set", nameOf(pod))
		}
		if other := listed[pod.UID]; other == nil || isTerminal(&other.Status) { // if two pods have one UID, the one that has not ended counts
			listed[pod.UID] = pod
		}
	}
	p.distribute(ctx, listed, number, began)
	return nil
}

// distribute passes a list to the records of all known pods, including those that it lacks. Unknown pods of the first
// list come from a previous agent and are adopted. Unknown pods of later lists are orphans. An orphan is stopped if it
// is still listed and unknown after orphanTimeout. number and began are those of the list. distribute changes listed.
func (p *poller) distribute(ctx context.Context, listed map[types.UID]*v1.Pod, number int, began time.Time) {
	for _, r := range p.agent.pods.all() {
		r.whole.observeList(listed[r.key], number)
		delete(listed, r.key)
	}
	isFirstList := !p.hasListed()
	orphans := map[types.UID]time.Time{} // when each was first listed
	for key, pod := range listed {       // only unknown pods are left
		firstListed, isKnownOrphan := p.orphans[key]
		switch {
		case isFirstList:
			p.adopt(ctx, pod, number, false)
		case !isKnownOrphan:
			orphans[key] = began
		case began.Sub(firstListed) < orphanTimeout:
			orphans[key] = firstListed
		default: // it has run for too long: stop it
			p.adopt(ctx, pod, number, true)
		}
	}
	p.orphans = orphans
	if isFirstList {
		close(p.firstListDone)
	}
}

// adopt adds a listed pod that CreatePod has not added, and updates it from the list with this number. An orphan, a
// pod that the API server seems not to have, is stopped at once.
func (p *poller) adopt(ctx context.Context, pod *v1.Pod, number int, isOrphan bool) {
	added := newRecord(ctx, p.agent, pod)
	added.desired.adopted = true // its deletion may be older than this process
	added.whole.runs = true      // so that observeList ends a pod that is listed as ended
	if isOrphan {
		_ = added.markTerminating() // before CreatePod can find the pod, so that CreatePod refuses it
	}
	if known, _ := p.agent.pods.add(added); known != nil { // CreatePod has just added the pod
		added.cancel()
		known.whole.observeList(pod, number)
		return
	}
	p.agent.spawn(added.name, added.sendStatuses)
	added.whole.observeList(pod, number)
	if isOrphan {
		p.agent.spawn(added.name, func() { _ = added.end(added.ctx, added.markDeleted(pod)) }) // fails only after Close
	}
}
