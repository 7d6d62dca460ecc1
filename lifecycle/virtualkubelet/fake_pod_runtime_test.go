package virtualkubelet_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/virtualkubelet"
)

// errAway is the error of all calls while a fake runtime is down.
var errAway = errors.New("500")

// watchedRuntime is a runtime with Exited.
type watchedRuntime interface {
	virtualkubelet.Runtime
	lifecycle.ExitWatcher
}

// fakePodRuntime is a PodRuntime that runs the containers of its pods in a runtime.
type fakePodRuntime struct {
	runtime watchedRuntime
	poll    time.Duration

	mu        sync.Mutex
	pods      map[types.UID]*v1.Pod
	hidden    map[types.UID]bool // Statuses omits them
	more      []*v1.Pod          // Statuses adds them
	reported  *v1.PodStatus      // the status of each pod in Statuses; nil: as it is
	down      bool               // all calls fail
	hang      int                // how many more calls of Create and Stop get no answer
	failStops int                // how many more calls of Stop fail
	slow      time.Duration      // how long the answer of Statuses takes to arrive
	lose      int                // how many more calls of Delete have no effect
	refused   error              // of Create
	job       string             // what Create annotates its pod with; "": nothing
	created   *v1.Pod            // as the last call of Create was given it
	deleted   *v1.Pod            // of the last call of Delete
	lists     int
	deletes   int
	creates   int
	stopping  sync.WaitGroup
}

// onFakePodRuntime replaces the provider's Runtime with a fakePodRuntime on it.
func onFakePodRuntime(p *fakePodRuntime) func(*virtualkubelet.Options) {
	return func(o *virtualkubelet.Options) {
		if o.Runtime != nil {
			p.runtime = o.Runtime.(watchedRuntime)
		}
		o.Runtime, o.Pods, o.PollInterval = nil, p, p.poll
		o.Terminator.StopTimeoutSlack = 10*time.Second + time.Millisecond // no list returns at the very end of its time
	}
}

func newFakePodRuntime(poll time.Duration) *fakePodRuntime {
	return &fakePodRuntime{poll: poll, pods: map[types.UID]*v1.Pod{}, hidden: map[types.UID]bool{}}
}

// script changes or reads fields while the provider runs.
func (p *fakePodRuntime) script(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// hangs reports whether this call must get no answer, and waits for the end of its ctx if so.
func (p *fakePodRuntime) hangs(ctx context.Context) bool {
	hangs := false
	p.script(func() {
		hangs = p.hang > 0
		p.hang--
	})
	if hangs {
		<-ctx.Done()
	}
	return hangs
}

// take counts a call and returns the stored pod, or the error that the call must return.
func (p *fakePodRuntime) take(pod *v1.Pod, calls *int) (*v1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*calls++
	if p.down {
		return nil, errAway
	}
	if there := p.pods[pod.UID]; there != nil {
		return there, nil
	}
	return nil, lifecycle.ErrContainerNotFound
}

// Create starts the pod's containers, unless the pod exists. While a test sets hang, down or refused, it fails without
// starting any.
func (p *fakePodRuntime) Create(ctx context.Context, pod *v1.Pod) error {
	p.script(func() { p.created = pod.DeepCopy() })
	if p.hangs(ctx) {
		return context.Cause(ctx)
	}
	if there, err := p.take(pod, &p.creates); there != nil || errors.Is(err, errAway) {
		return err
	}
	var refused error
	if p.script(func() { refused = p.refused }); refused != nil {
		return refused
	}
	for i := range pod.Spec.Containers {
		if _, err := p.runtime.StartContainer(ctx, pod, &pod.Spec.Containers[i]); err != nil {
			return err
		}
	}
	p.script(func() {
		p.pods[pod.UID] = pod.DeepCopy()
		if p.job != "" {
			pod.Annotations = map[string]string{"job": p.job}
		}
	})
	return nil
}

// Stop tells all containers to stop and returns at once; Statuses shows later that they have ended.
func (p *fakePodRuntime) Stop(ctx context.Context, pod *v1.Pod, graceSeconds int64) error {
	if p.hangs(ctx) {
		return context.Cause(ctx)
	}
	fails, calls := false, 0
	if p.script(func() { fails, p.failStops = p.failStops > 0, p.failStops-1 }); fails {
		return errAway
	}
	there, err := p.take(pod, &calls)
	if err != nil {
		return err
	}
	for _, c := range there.Spec.Containers {
		p.stopping.Add(1)
		go func() {
			defer p.stopping.Done()
			_ = p.runtime.StopContainer(context.WithoutCancel(ctx), string(pod.UID)+"/"+c.Name, graceSeconds)
		}()
	}
	return nil
}

// Statuses takes the list first and then lets time pass, so that a slow answer is out of date when it arrives.
func (p *fakePodRuntime) Statuses(context.Context) ([]*v1.Pod, error) {
	pods, slow, err := p.statuses()
	if slow > 0 {
		<-time.After(slow)
	}
	return pods, err
}

// statuses lists the stored pods as they are now, and returns how long the answer takes to arrive.
func (p *fakePodRuntime) statuses() (pods []*v1.Pod, slow time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists++
	if p.down {
		return nil, p.slow, errAway
	}
	for uid, pod := range p.pods {
		if p.hidden[uid] {
			continue
		}
		pod = pod.DeepCopy()
		pod.Status = v1.PodStatus{Phase: v1.PodSucceeded, PodIP: "10.0.0.1"}
		for _, c := range pod.Spec.Containers {
			id := string(uid) + "/" + c.Name
			status := v1.ContainerStatus{Name: c.Name, ContainerID: "place://" + id, ImageID: "sha", Ready: true}
			select {
			case <-p.runtime.Exited(id):
				code, _ := p.runtime.ExitCode(id)
				status.State.Terminated = &v1.ContainerStateTerminated{ExitCode: code, Reason: "Completed"}
				if code != 0 && pod.Status.Phase == v1.PodSucceeded {
					pod.Status.Phase = v1.PodFailed
				}
			default:
				pod.Status.Phase = v1.PodRunning
				status.State.Running = &v1.ContainerStateRunning{}
			}
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
		}
		if p.reported != nil {
			pod.Status = *p.reported
		}
		pods = append(pods, pod)
	}
	return append(pods, p.more...), p.slow, nil
}

// Delete forgets the pod, unless a test lets it lose the call: then the pod stays although there is no error.
func (p *fakePodRuntime) Delete(_ context.Context, pod *v1.Pod) error {
	p.script(func() { p.deleted = pod })
	if _, err := p.take(pod, &p.deletes); err != nil {
		return err
	}
	p.script(func() {
		if p.lose > 0 {
			p.lose--
			return
		}
		delete(p.pods, pod.UID)
	})
	return nil
}

// kept returns the UIDs of the stored pods.
func (p *fakePodRuntime) kept() (uids []types.UID) {
	p.script(func() { uids = slices.Collect(maps.Keys(p.pods)) })
	return uids
}

// calls returns one of the counts.
func (p *fakePodRuntime) calls(count *int) (n int) {
	p.script(func() { n = *count })
	return n
}
