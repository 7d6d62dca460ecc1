//go:build go1.25

package drain_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/drain"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

var (
	errNotReady = errors.New("not synced")
	errStopped  = errors.New("no longer wanted")
)

const high = 1000

// rig is a drain and everything around it. Its schedule gives 20 s to the pods of priority 0 and
// 10 s to those of 1000; they use all of their time unless ends says otherwise. It is the listener
// of its drain too.
type rig struct {
	t       *testing.T
	began   time.Time
	options drain.Options
	request drain.Request
	drain   *drain.Drain
	ctx     context.Context
	end     context.CancelFunc
	over    chan struct{} // closed by the test to end calls that hang

	mu      sync.Mutex
	pods    []*v1.Pod
	ends    map[string]time.Duration // how long pods take
	calls   []call1
	told    []string // of the listener, with times
	planned []timetable.Table
	record  *call.Future[struct{}] // that Planned returns
	errs    []string
}

// call1 is one call of the killer.
type call1 struct {
	pod     string
	at      time.Duration
	seconds int64
}

func newRig(t *testing.T, pods ...*v1.Pod) *rig {
	t.Helper()
	r := &rig{t: t, began: time.Now(), pods: pods, ends: map[string]time.Duration{}, over: make(chan struct{})}
	stored, complete := call.NewFuture[struct{}]()
	complete(struct{}{}, nil)
	r.record = stored
	r.ctx, r.end = context.WithCancel(t.Context())
	r.options = drain.Options{
		Embedder: drain.Embedder{
			Pods:       func(context.Context) ([]*v1.Pod, error) { return r.currentPods(), nil },
			Kill:       r.kill,
			NoRetry:    func(error) bool { return false },
			LateStart:  func() bool { return false },
			BucketDone: func(time.Duration) {},
		},
		Outbox: outbox.New(outbox.Options{}),
		Calls:  &call.Group{},
	}
	r.request = drain.Request{
		Number: 1, Account: kills.NewAccount(r.began, func(types.UID) *kills.Kill { return nil }),
		Table:   timetable.Request{Schedule: plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: high, Seconds: 10}}, Received: r.began},
		Publish: func() *outbox.Publication { return nil },
	}
	return r
}

// inBubble runs a test in a bubble, and ends the calls that hang afterwards.
func inBubble(t *testing.T, pods []*v1.Pod, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pods...)
		test(t, r)
		r.end()
		close(r.over)
		require.Empty(t, r.options.Calls.Wait(nil))
	})
}

// start begins the drain and does not wait for it.
func (r *rig) start() (done <-chan bool) {
	r.drain = drain.New(r.ctx, r.options, r.request, r)
	ended := make(chan bool, 1)
	go func() { ended <- r.drain.Run() }()
	return ended
}

// run runs the whole drain and returns how long it took.
func (r *rig) run() time.Duration {
	<-r.start()
	return time.Since(r.began)
}

// advance waits for d, and until everything else does.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (r *rig) locked(what func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what()
}

func (r *rig) currentPods() (pods []*v1.Pod) {
	r.locked(func() { pods = slices.Clone(r.pods) })
	return pods
}

func (r *rig) setPods(pods ...*v1.Pod) { r.locked(func() { r.pods = pods }) }

// kill is Embedder.Kill.
func (r *rig) kill(ctx context.Context, pod *v1.Pod, seconds int64) (kills.Result, error) {
	takes := time.Duration(seconds) * time.Second
	r.locked(func() {
		r.calls = append(r.calls, call1{pod.Name, time.Since(r.began), seconds})
		if d, known := r.ends[pod.Name]; known {
			takes = d
		}
	})
	select {
	case <-time.After(takes):
		return kills.Result{}, nil
	case <-ctx.Done():
		return kills.Result{}, context.Cause(ctx)
	}
}

// killed returns the calls of the killer so far.
func (r *rig) killed() (calls []call1) {
	r.locked(func() { calls = slices.Clone(r.calls) })
	return calls
}

// failures returns what the listener was told of failures.
func (r *rig) failures() (errs []string) {
	r.locked(func() { errs = slices.Clone(r.errs) })
	return errs
}

func (r *rig) tell(format string, of ...any) {
	r.locked(func() { r.told = append(r.told, fmt.Sprintf("%v ", time.Since(r.began))+fmt.Sprintf(format, of...)) })
}

// heard returns what the listener was told, with the times since the event.
func (r *rig) heard() (told []string) {
	r.locked(func() { told = slices.Clone(r.told) })
	return told
}

func (r *rig) Planned(table timetable.Table) *call.Future[struct{}] {
	r.locked(func() { r.planned = append(r.planned, table) })
	r.tell("planned %d", len(r.request.Account.All()))
	return r.record
}

func (r *rig) Passed(step drain.Step) {
	r.tell("passed %s", map[drain.Step]string{drain.Prepared: "prepared", drain.Held: "held", drain.Published: "published"}[step])
}
func (r *rig) Begins(bucket int)             { r.tell("begins %d", bucket) }
func (r *rig) Ends(bucket int)               { r.tell("ends %d", bucket) }
func (r *rig) Signalled(k *kills.Kill)       { r.tell("signalled %s", k.Pod().Name) }
func (r *rig) Ended(k *kills.Kill)           { r.tell("ended %s", k.Pod().Name) }
func (r *rig) GaveUp(k *kills.Kill, _ error) { r.tell("gave up %s", k.Pod().Name) }
func (r *rig) Fail(err error) {
	if err != nil {
		r.locked(func() { r.errs = append(r.errs, err.Error()) })
	}
}

// pod returns a pod with a grace period in seconds; one below 0 is none.
func pod(name string, priority int32, seconds int64) *v1.Pod {
	p := &v1.Pod{}
	p.Name, p.UID, p.Spec.Priority = name, types.UID("uid-"+name), &priority
	if seconds >= 0 {
		p.Spec.TerminationGracePeriodSeconds = ptr.To(seconds)
	}
	return p
}

func twoPods() []*v1.Pod { return []*v1.Pod{pod("web", 0, 60), pod("etcd", high, 60)} }

// granted returns the seconds of the last call for each pod.
func granted(calls []call1) map[string]int64 {
	seconds := map[string]int64{}
	for _, c := range calls {
		seconds[c.pod] = c.seconds
	}
	return seconds
}

// names returns the pods of calls, each once, sorted.
func names(calls []call1) []string { return slices.Sorted(maps.Keys(granted(calls))) }
