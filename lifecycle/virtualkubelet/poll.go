package virtualkubelet

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// orphanTimeout is how long an orphan may run: a pod that Statuses lists but that was never passed to CreatePod. Then
// the provider stops it. virtual-kubelet calls CreatePod within this time for every pod that the API server has.
const orphanTimeout = time.Minute

// poll gets one list and passes it to the pods. began is when the list begins.
func (p *poller) poll(ctx context.Context, began time.Time) {
	number := p.beginList()
	listed := map[types.UID]*v1.Pod{}
	err := p.callWithin(ctx, "Statuses", callTimeout, func(ctx context.Context) error {
		list, err := p.provider.opts.Pods.Statuses(ctx)
		if err != nil {
			return err
		}
		return indexByUID(list, listed)
	})
	if err == nil {
		p.distribute(ctx, listed, number, began)
	}
}

// indexByUID adds the pods of a list to a map. A list with an invalid pod is an error as a whole, because a pod that is
// missing from a list counts as ended. If two pods have one UID, the one that has not ended counts.
func indexByUID(list []*v1.Pod, listed map[types.UID]*v1.Pod) error {
	for i, pod := range list {
		switch {
		case pod == nil:
			return fmt.Errorf("the list of Statuses: pod %d is nil", i)
		case pod.UID == "":
			return fmt.Errorf("the list of Statuses: pod %s: UID: must be set", nameOf(pod))
		}
		if other := listed[pod.UID]; other == nil || isTerminal(&other.Status) {
			listed[pod.UID] = pod
		}
	}
	return nil
}

// distribute passes a list to all known pods. A pod that the list lacks gets nil. Unknown pods of the first list come from a
// previous agent and are adopted. Unknown pods of later lists are orphans. An orphan is stopped if it is still listed and unknown
// after orphanTimeout. number and began are those of the list. distribute changes listed.
func (p *poller) distribute(ctx context.Context, listed map[types.UID]*v1.Pod, number int, began time.Time) {
	const orphan, ofPreviousAgent = true, false // for the parameter isOrphan of adopt
	for _, m := range p.provider.pods.all() {
		m.asWholePod().observeList(listed[m.key], number)
		delete(listed, m.key)
	}
	isFirstList := !p.hasListed()
	orphans := map[types.UID]time.Time{} // when each was first listed
	for key, pod := range listed {       // only unknown pods are left
		firstListed, isKnownOrphan := p.orphans[key]
		switch {
		case isFirstList:
			p.adopt(ctx, pod, number, ofPreviousAgent)
		case !isKnownOrphan:
			orphans[key] = began
		case began.Sub(firstListed) < orphanTimeout:
			orphans[key] = firstListed
		default: // it has run for too long: stop it
			p.adopt(ctx, pod, number, orphan)
		}
	}
	p.orphans = orphans
	if isFirstList {
		close(p.firstListDone)
	}
}

// adopt adds a pod of a list that CreatePod has not added, and updates it from that list, whose number is given. isOrphan says
// that the API server seems not to have the pod: adopt then begins to stop it.
func (p *poller) adopt(ctx context.Context, pod *v1.Pod, number int, isOrphan bool) {
	added := p.provider.newWholePod(ctx, pod)
	added.desired.deletionMayBeOld = true
	added.isRunning = true              // so that observeList ends a pod that is listed as ended
	added.ending.terminating = isOrphan // before CreatePod can find the pod, so that CreatePod refuses it
	if known, _ := p.provider.pods.add(added.managedPod); known != nil {
		added.cancel() // CreatePod has just added the pod
		known.asWholePod().observeList(pod, number)
		return
	}
	added.observeList(pod, number) // first, because run sends a status
	added.run()
	if isOrphan {
		p.provider.spawn(added.name, func() { _ = added.terminateIfKnown(added.ctx, added.markDeleted(pod)) }) // fails only after Close
	}
}
