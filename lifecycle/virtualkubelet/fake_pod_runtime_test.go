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

// errAway is the error of all calls while a fake runtime is down. Its text is that of an HTTP status.
var errAway = errors.New("500")

// watchedRuntime is a runtime that is also an ExitWatcher.
type watchedRuntime interface {
	virtualkubelet.Runtime
	lifecycle.ExitWatcher
}

// fakePodRuntime is a PodRuntime that runs the containers of its pods in another runtime. poll is the interval in which the
// provider lists the pods. A test makes it fail, hang or lie with the other fields.
type fakePodRuntime struct {
	runtime watchedRuntime
	poll    time.Duration

	mu           sync.Mutex
	pods         map[types.UID]*v1.Pod
	notListed    map[types.UID]bool // Statuses omits these pods
	alsoListed   []*v1.Pod          // Statuses adds these pods
	reported     *v1.PodStatus      // the status of each pod in Statuses; nil: its real one
	down         bool               // all calls fail
	ignoresStops bool               // Stop returns nil without an effect
	hangingCalls int                // how many more calls of Create and Stop get no answer
	listDelay    time.Duration      // how long the answer of Statuses takes to arrive
	lostDeletes  int                // how many more calls of Delete return nil without an effect
	createErr    error              // what Create returns instead of creating the pod; nil: it creates it
	job          string             // the value of the annotation "job" that Create adds; "": it adds none
	created      *v1.Pod            // the pod that the last call of Create got
	deleted      *v1.Pod            // the pod that the last call of Delete got
	lists        int                // how often Statuses was called
	stops        int                // how often Stop was called, without the calls that hang
	deletes      int                // how often Delete was called
	creates      int                // how often Create was called, without the calls that hang
	stopping     sync.WaitGroup     // the StopContainer calls that Stop has begun
}

// onFakePodRuntime makes the provider use p instead of its Runtime. p then runs the containers of its pods in that Runtime.
func onFakePodRuntime(p *fakePodRuntime) func(*virtualkubelet.Options) {
	return func(o *virtualkubelet.Options) {
		if o.Runtime != nil {
			p.runtime = o.Runtime.(watchedRuntime)
		}
		o.Runtime, o.Pods, o.PollInterval = nil, p, p.poll
		o.Terminator.StopTimeoutSlack = 10*time.Second + time.Millisecond // the millisecond: a list that arrives after exactly 10 s is in time
	}
}

func newFakePodRuntime(poll time.Duration) *fakePodRuntime {
	return &fakePodRuntime{poll: poll, pods: map[types.UID]*v1.Pod{}, notListed: map[types.UID]bool{}}
}

// change calls do with the mutex held: it may change or read fields while the provider runs.
func (p *fakePodRuntime) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

// hangs reports whether this call gets no answer (hangingCalls). If so, hangs waits until ctx ends.
func (p *fakePodRuntime) hangs(ctx context.Context) bool {
	hangs := false
	p.change(func() {
		hangs = p.hangingCalls > 0
		p.hangingCalls--
	})
	if hangs {
		<-ctx.Done()
	}
	return hangs
}

// receive counts a call in *calls. It returns the stored pod with the pod's UID, or the error that the call must return:
// errAway while the runtime is down, ErrContainerNotFound for an unknown pod.
func (p *fakePodRuntime) receive(pod *v1.Pod, calls *int) (*v1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*calls++
	if p.down {
		return nil, errAway
	}
	if stored := p.pods[pod.UID]; stored != nil {
		return stored, nil
	}
	return nil, lifecycle.ErrContainerNotFound
}

// Create starts the pod's containers, unless the pod exists. While a test sets hangingCalls, down or createErr, it fails
// without starting any.
func (p *fakePodRuntime) Create(ctx context.Context, pod *v1.Pod) error {
	p.change(func() { p.created = pod.DeepCopy() })
	if p.hangs(ctx) {
		return context.Cause(ctx)
	}
	stored, err := p.receive(pod, &p.creates)
	var createErr error
	p.change(func() { createErr = p.createErr })
	switch {
	case errors.Is(err, errAway):
		return err
	case createErr != nil:
		return createErr
	case stored != nil:
		return nil
	}
	for i := range pod.Spec.Containers {
		if _, err := p.runtime.StartContainer(ctx, pod, &pod.Spec.Containers[i]); err != nil {
			return err
		}
	}
	p.change(func() {
		p.pods[pod.UID] = pod.DeepCopy()
		if p.job != "" {
			pod.Annotations = map[string]string{"job": p.job}
		}
	})
	return nil
}

// Stop tells all containers to stop, unless a test sets ignoresStops, and returns at once; Statuses shows later that they have ended.
func (p *fakePodRuntime) Stop(ctx context.Context, pod *v1.Pod, graceSeconds int64) error {
	if p.hangs(ctx) {
		return context.Cause(ctx)
	}
	stored, err := p.receive(pod, &p.stops)
	var ignored bool
	p.change(func() { ignored = p.ignoresStops })
	if err != nil || ignored {
		return err
	}
	for _, c := range stored.Spec.Containers {
		p.stopping.Add(1)
		go func() {
			defer p.stopping.Done()
			_ = p.runtime.StopContainer(context.WithoutCancel(ctx), string(pod.UID)+"/"+c.Name, graceSeconds)
		}()
	}
	return nil
}

// Statuses lists the pods first and then lets listDelay pass, so that a delayed answer is out of date when it arrives.
func (p *fakePodRuntime) Statuses(context.Context) ([]*v1.Pod, error) {
	pods, listDelay, err := p.statuses()
	if listDelay > 0 {
		<-time.After(listDelay)
	}
	return pods, err
}

// statuses lists the stored pods as they are now, and returns how long the answer takes to arrive.
func (p *fakePodRuntime) statuses() (pods []*v1.Pod, listDelay time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists++
	if p.down {
		return nil, p.listDelay, errAway
	}
	for uid, pod := range p.pods {
		if p.notListed[uid] {
			continue
		}
		pod = pod.DeepCopy()
		pod.Status = v1.PodStatus{Phase: v1.PodSucceeded, PodIP: "10.0.0.1"} // unless a container has failed or runs
		for _, c := range pod.Spec.Containers {
			id := string(uid) + "/" + c.Name
			status := v1.ContainerStatus{Name: c.Name, ContainerID: "fake://" + id, ImageID: "sha", Ready: true}
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
	return append(pods, p.alsoListed...), p.listDelay, nil
}

// Delete forgets the pod. The first lostDeletes calls return nil too, but keep the pod.
func (p *fakePodRuntime) Delete(_ context.Context, pod *v1.Pod) error {
	p.change(func() { p.deleted = pod })
	if _, err := p.receive(pod, &p.deletes); err != nil {
		return err
	}
	p.change(func() {
		if p.lostDeletes > 0 {
			p.lostDeletes--
			return
		}
		delete(p.pods, pod.UID)
	})
	return nil
}

// storedUIDs returns the UIDs of the stored pods.
func (p *fakePodRuntime) storedUIDs() (uids []types.UID) {
	p.change(func() { uids = slices.Collect(maps.Keys(p.pods)) })
	return uids
}

// countOf returns one of the counts (lists, stops, deletes or creates).
func (p *fakePodRuntime) countOf(count *int) (n int) {
	p.change(func() { n = *count })
	return n
}
