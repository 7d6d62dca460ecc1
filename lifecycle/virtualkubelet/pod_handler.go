package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// CreatePod adds a pod and returns at once. The containers are started in the background, so that
// virtual-kubelet can delete a pod whose start takes long. For a known pod it only replaces the
// metadata and spec.
//
// CreatePod refuses these pods with an errdefs.ErrInvalidInput:
//
//   - a pod that is deleted or terminating: the error wraps [lifecycle.ErrTerminating];
//   - a pod without containers, or with two containers of one name;
//   - a pod with the UID of a pod that has another name;
//   - after [Provider.Close], any pod: the error wraps [lifecycle.ErrClosed].
//
// If a known pod has the same name but another UID, the API server no longer has that pod. CreatePod
// terminates it as DeletePod does, and starts the new pod when the old one has ended.
//
// CreatePod keeps the values of ctx and ignores its end.
func (p *Provider) CreatePod(ctx context.Context, pod *v1.Pod) error {
	if err := p.check(pod); err != nil {
		return err
	}
	if err := p.checkNew(pod); err != nil {
		return newRefusedError(pod, err)
	}
	p.poller.start(ctx)
	added := p.newPod(ctx, pod)
	added.ending.startInProgress = true
	known, earlier := p.pods.add(added)
	if known != nil { // added is not needed
		added.cancel()
		return known.createAgain(pod)
	}
	added.run()
	p.spawn(added.name, func() { added.startPod(earlier) })
	var errs []error
	for _, other := range earlier {
		override := other.supersede()
		errs = append(errs, other.terminateIfKnown(added.ctx, override))
	}
	return errors.Join(errs...)
}

// createAgain handles a CreatePod for a known pod: it replaces the pod's metadata and spec, unless the pod is terminating.
func (m *managedPod) createAgain(pod *v1.Pod) error {
	if err := m.checkSameName(pod); err != nil {
		return err
	}
	if isTerminating := m.update(pod); isTerminating {
		return newRefusedError(pod, lifecycle.ErrTerminating)
	}
	return nil
}

// checkNew returns why CreatePod must refuse the pod; nil: it need not.
func (p *Provider) checkNew(pod *v1.Pod) error {
	switch {
	case pod.DeletionTimestamp != nil:
		return lifecycle.ErrTerminating
	case p.isClosed():
		return lifecycle.ErrClosed
	case len(pod.Spec.Containers) == 0:
		return errNoContainer
	default:
		return checkNames(pod)
	}
}

// UpdatePod replaces the metadata and spec of a pod; its containers do not change. A pod with a
// deletionTimestamp is passed to [Provider.DeletePod]. An unknown pod is an errdefs.ErrNotFound, unless
// a pod with the same name is known: then UpdatePod calls [Provider.CreatePod].
func (p *Provider) UpdatePod(ctx context.Context, pod *v1.Pod) error {
	if err := p.check(pod); err != nil {
		return err
	}
	if pod.DeletionTimestamp != nil {
		return p.DeletePod(ctx, pod)
	}
	if m := p.pods.find(pod); m != nil {
		if err := m.checkSameName(pod); err != nil {
			return err
		}
		m.update(pod)
		return nil
	}
	if p.pods.named(nameOf(pod)) != nil {
		return p.CreatePod(ctx, pod)
	}
	return newNotFoundError(pod.Namespace, pod.Name)
}

// DeletePod begins or shortens the termination of a pod, and returns at once. It may be called any number
// of times: a pod has one termination, its hooks run once, and its deadline only moves earlier
// (k/k#83916).
//
// The grace period is the pod's deletionGracePeriodSeconds, in seconds from the call. As in the kubelet,
// deletionTimestamp is not compared with the clock. There are two exceptions:
//
//   - An adopted pod (one of a previous process) may have been deleted before this process began, so it
//     has the time until its deletionTimestamp (graceperiod.LeftOfDeletion).
//   - If a terminating pod vanishes from the API server, virtual-kubelet passes a copy that GetPod or GetPods
//     returned. If an earlier call had a deletionTimestamp, somebody has since deleted the pod by force,
//     and it has 1 s.
//
// When all containers have ended, virtual-kubelet gets the final status, and the provider forgets the
// pod.
//
// The UID identifies the pod, so that a late call for an old pod does not affect a new one with its
// name. A pod without a UID, which some forks of virtual-kubelet pass, means the newest with its name.
//
// An unknown pod is an errdefs.ErrNotFound. If containers could not be stopped, the error says why, and
// the next call tries again. After [Provider.Close] the error wraps [lifecycle.ErrClosed]. DeletePod keeps the
// values of ctx and ignores its end.
func (p *Provider) DeletePod(ctx context.Context, pod *v1.Pod) error {
	m, err := p.find(pod)
	if err != nil {
		return err
	}
	override := m.markDeleted(pod)
	if err := m.terminateIfKnown(ctx, override); err != nil {
		return err
	}
	return m.stopError()
}

// GetPod returns a copy of a pod with its current status. The copy of a terminating pod has an additional
// annotation, so that DeletePod can tell such a copy from a pod of the API server. If the pod is unknown,
// the error is an errdefs.ErrNotFound.
func (p *Provider) GetPod(_ context.Context, namespace, name string) (*v1.Pod, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	m := p.pods.named(types.NamespacedName{Namespace: namespace, Name: name})
	if m == nil {
		return nil, newNotFoundError(namespace, name)
	}
	return m.podForVirtualKubelet(), nil
}

// GetPodStatus returns a copy of a pod's current status. An unknown pod is an
// errdefs.ErrNotFound.
func (p *Provider) GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods returns copies of all pods as GetPod does, sorted by namespace and name. virtual-kubelet calls
// it when it starts, and deletes the pods that the API server no longer has; with a [PodRuntime] GetPods
// therefore waits for the first list. The error has the cause of ctx, or wraps [lifecycle.ErrClosed]
// after [Provider.Close].
func (p *Provider) GetPods(ctx context.Context) ([]*v1.Pod, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	p.poller.start(ctx)
	if err := p.poller.awaitFirstList(ctx); err != nil {
		return nil, err
	}
	known := p.pods.newest()
	pods := make([]*v1.Pod, 0, len(known))
	for _, m := range known {
		pods = append(pods, m.podForVirtualKubelet())
	}
	return pods, nil
}

// NotifyPods registers the callback for changed statuses. virtual-kubelet's PodController calls it when
// it starts; before that no status is sent and no pod is forgotten. A nil notify registers nothing.
//
// notify is called concurrently for different pods, and with one status at a time for each pod. It may
// block. The end of ctx has no effect: [Provider.Close] ends the calls.
func (p *Provider) NotifyPods(ctx context.Context, notify func(*v1.Pod)) {
	if err := p.check(); err != nil {
		klog.FromContext(ctx).Error(err, "NotifyPods had no effect")
		return
	}
	p.poller.start(ctx)
	if notify != nil && p.notify.Swap(&notify) == nil { // nil: it is the first callback
		close(p.registered)
	}
}

// StatusChanged sends the status of a pod to virtual-kubelet again. Call it when [Options.Status] would
// set other values, such as a late podIP; changes in [PodRuntime].Statuses need no call. It returns at
// once, and has no effect for a terminating or unknown pod.
func (p *Provider) StatusChanged(pod *v1.Pod) {
	if m, err := p.find(pod); err == nil {
		m.wakeSender()
	}
}

// checkNames returns an error for a pod of which two containers have the same name.
func checkNames(pod *v1.Pod) error {
	names := map[string]bool{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if names[c.Name] {
			return fmt.Errorf("spec: two containers have the name %q", c.Name)
		}
		names[c.Name] = true
	}
	return nil
}

// checkSameName returns an error for a pod that has the UID of this one but another name: a UID may not be reused.
func (m *managedPod) checkSameName(pod *v1.Pod) error {
	if nameOf(pod) == m.name {
		return nil
	}
	return newRefusedError(pod, fmt.Errorf("metadata.uid: %q is that of pod %s", pod.UID, m.name))
}
