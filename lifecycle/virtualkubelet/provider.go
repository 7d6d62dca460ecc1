package virtualkubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// Provider is a provider for virtual-kubelet and a [shutdown.PodKiller]. Make one with
// [New] and end it with [Provider.Close]. All methods may be called concurrently. Those of
// the zero value return an error, and so does every method that is given a nil pod.
type Provider struct {
	agent *agent
}

// New returns a provider without pods and starts no goroutine. The error joins all faults
// of the options.
func New(opts Options) (*Provider, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("failed to make a provider: %w", err)
	}
	opts.PollInterval = cmp.Or(opts.PollInterval, defaultPollInterval)
	shared := &agent{opts: opts, registered: make(chan struct{}), pods: newPodTable()}
	shared.starts = make(chan struct{}, cmp.Or(opts.MaxStarts, defaultMaxStarts))
	if opts.Pods != nil {
		shared.poller = newPoller(shared)
	}
	newTerminator := opts.newTerminator
	if newTerminator == nil {
		newTerminator = func(opts lifecycle.TerminatorOptions) (terminator, error) { return lifecycle.NewTerminator(opts) }
	}
	var err error
	if shared.terminator, err = newTerminator(shared.terminatorOptions()); err != nil {
		return nil, fmt.Errorf("failed to make a provider: %w", err)
	}
	shared.ctx, shared.close = context.WithCancelCause(context.Background()) //nolint:forbidigo // New has no context; Close ends it
	return &Provider{agent: shared}, nil
}

var (
	errNotMade = errors.New("the provider was not made with New")
	errNoPod   = errors.New("the pod is nil")

	errNoContainer = errors.New("spec.containers: must not be empty")
)

// find returns what is known of a pod. The error says that the call can have no effect, or is an
// errdefs.ErrNotFound.
func (p *Provider) find(pod *v1.Pod) (*record, error) {
	if err := p.check(pod); err != nil {
		return nil, err
	}
	if r := p.agent.pods.find(pod); r != nil {
		return r, nil
	}
	return nil, newNotFoundError(pod.Namespace, pod.Name)
}

// check returns the error of a call that can have no effect.
func (p *Provider) check(pods ...*v1.Pod) error {
	if p == nil || p.agent == nil {
		return errNotMade
	}
	if slices.Contains(pods, nil) {
		return errNoPod
	}
	return nil
}

// CreatePod adds a pod and returns at once. The containers are started in the background,
// so that virtual-kubelet can delete a pod whose start takes long. For a pod that runs
// already, only the metadata and spec are replaced.
//
// A deleted pod, or one whose termination has begun, is refused with an
// errdefs.ErrInvalidInput that wraps [lifecycle.ErrTerminating]; after [Provider.Close]
// it wraps [lifecycle.ErrClosed].
//
// If another pod with the same name but another UID is known, the API server no longer
// has that pod. CreatePod then terminates it as DeletePod does, and starts the new pod
// when it has ended.
//
// CreatePod keeps the values of ctx and ignores its end.
func (p *Provider) CreatePod(ctx context.Context, pod *v1.Pod) error {
	if err := p.check(pod); err != nil {
		return err
	}
	if pod.DeletionTimestamp != nil {
		return newRefusedError(pod, lifecycle.ErrTerminating)
	}
	if p.agent.isClosed() {
		return newRefusedError(pod, lifecycle.ErrClosed)
	}
	if len(pod.Spec.Containers) == 0 {
		return newRefusedError(pod, errNoContainer)
	}
	p.agent.poller.start(ctx)
	r := newRecord(ctx, p.agent, pod)
	r.ending.starting = true
	known, earlier := p.agent.pods.add(r)
	if known != nil {
		r.cancel()
		if known.update(pod) {
			return newRefusedError(pod, lifecycle.ErrTerminating)
		}
		return nil
	}
	r.notifier.wake()
	start := &starter{agent: p.agent, r: r, earlier: earlier}
	p.agent.spawn(r.name, r.notifier.run)
	p.agent.spawn(r.name, start.run)
	if p.agent.opts.Pods == nil {
		p.agent.spawn(r.name, r.watch)
	}
	var errs []error
	for _, other := range earlier {
		errs = append(errs, other.ender.end(r.ctx, other.supersede()))
	}
	return errors.Join(errs...)
}

// UpdatePod replaces the metadata and spec of a pod; its containers do not change. If the
// pod has a deletionTimestamp, it calls [Provider.DeletePod]. An unknown pod is an
// errdefs.ErrNotFound, unless an earlier pod with the same name is known: then the pod is
// created.
func (p *Provider) UpdatePod(ctx context.Context, pod *v1.Pod) error {
	if err := p.check(pod); err != nil {
		return err
	}
	if pod.DeletionTimestamp != nil {
		return p.DeletePod(ctx, pod)
	}
	if r := p.agent.pods.find(pod); r != nil {
		r.update(pod)
		return nil
	}
	if p.agent.pods.named(nameOf(pod)) != nil {
		return p.CreatePod(ctx, pod)
	}
	return newNotFoundError(pod.Namespace, pod.Name)
}

// DeletePod begins the termination of a pod, or shortens it, and returns at once. It may
// be called any number of times: a pod has one termination, its hooks run once, and its
// deadline only moves earlier (k/k#83916).
//
// The grace period is the pod's deletionGracePeriodSeconds, counted from the call. As in
// the kubelet, deletionTimestamp is not compared with the clock. There are two
// exceptions. The deletion of an adopted pod may be older than this process, so the pod
// has what its deletionTimestamp leaves (graceperiod.LeftOfDeletion). And if
// virtual-kubelet passes a pod back that the API server no longer has, the pod was
// deleted by force: if its deletion was known before, 1 s is left.
//
// When all containers have ended, virtual-kubelet is notified of the final status and the
// provider forgets the pod.
//
// The UID decides which pod is meant, so that a late call for an earlier pod does nothing to a new
// one of that name. A pod without a UID, as some forks of virtual-kubelet pass it, is the newest of
// its name.
//
// An unknown pod is an errdefs.ErrNotFound. Other errors tell why containers could not be
// stopped, in which case each further call tries again, or wrap [lifecycle.ErrClosed]
// after [Provider.Close], or have the cause of ctx. ctx bounds only the beginning of the
// termination.
func (p *Provider) DeletePod(ctx context.Context, pod *v1.Pod) error {
	r, err := p.find(pod)
	if err != nil {
		return err
	}
	if err := r.ender.end(ctx, r.remove(pod)); err != nil {
		return err
	}
	return r.ender.whyStuck()
}

// GetPod returns a copy of a pod with its current status. An unknown pod is an
// errdefs.ErrNotFound. The copy of a terminating pod has an additional annotation, by
// which DeletePod recognizes it.
func (p *Provider) GetPod(_ context.Context, namespace, name string) (*v1.Pod, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	r := p.agent.pods.named(types.NamespacedName{Namespace: namespace, Name: name})
	if r == nil {
		return nil, newNotFoundError(namespace, name)
	}
	return r.markedView(), nil
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

// GetPods returns copies of all pods as GetPod does, sorted by namespace and name. With a
// [PodRuntime] it waits until that has listed its pods, because virtual-kubelet starts
// with this call, and deletes those that the API server has no more. The error has the cause of
// ctx, or wraps [lifecycle.ErrClosed] after [Provider.Close].
func (p *Provider) GetPods(ctx context.Context) ([]*v1.Pod, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	p.agent.poller.start(ctx)
	if err := p.agent.poller.await(ctx); err != nil {
		return nil, err
	}
	records := p.agent.pods.newest()
	pods := make([]*v1.Pod, 0, len(records))
	for _, r := range records {
		pods = append(pods, r.markedView())
	}
	return pods, nil
}

// NotifyPods registers the callback for changed statuses; virtual-kubelet's PodController
// calls it when it starts. Before that nobody is notified and no pod is forgotten. A nil
// notify changes nothing.
//
// notify is called for several pods concurrently, but for one pod with one status after
// the other. It may block. The end of the context changes nothing: [Provider.Close] ends the calls.
func (p *Provider) NotifyPods(ctx context.Context, notify func(*v1.Pod)) {
	if err := p.check(); err != nil {
		klog.FromContext(ctx).Error(err, "NotifyPods was called without effect")
		return
	}
	p.agent.poller.start(ctx)
	if notify != nil && p.agent.notify.Swap(&notify) == nil {
		close(p.agent.registered)
	}
}

// StatusChanged tells virtual-kubelet the status of a pod again, because [Options.Status] would now
// set other fields: a podIP that has come late. It returns at once. A pod that is terminating or
// unknown is not told of. With a [PodRuntime] it is not needed for what Statuses returns.
func (p *Provider) StatusChanged(pod *v1.Pod) {
	if r, err := p.find(pod); err == nil {
		r.notifier.wake()
	}
}

// Close ends the provider and leaves its pods running: a restarted agent adopts them with
// [Provider.Adopt]. It cancels the hooks, stops and starts that are under way, and no new
// ones begin.
//
// Close waits until all goroutines have ended. ctx bounds that; the error then names the
// containers whose stop hangs, in a [*lifecycle.StillRunningError], and the pods whose
// start or notification hangs. It may be called again.
//
// To stop the pods together with the agent, drain them first with
// shutdown.Manager.TerminateAll.
func (p *Provider) Close(ctx context.Context) error {
	if err := p.check(); err != nil {
		return err
	}
	p.agent.close(lifecycle.ErrClosed)
	err := p.agent.terminator.Close(ctx)
	hanging := slices.Compact(p.agent.calls.Wait(ctx.Done()))
	if len(hanging) == 0 {
		return err
	}
	return errors.Join(err, fmt.Errorf("stopped waiting for calls that have not returned, of pods %s: %w", strings.Join(hanging, ", "), context.Cause(ctx)))
}
