package kills

import (
	"context"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

// retryPause is the time between two attempts to kill a pod.
const retryPause = time.Second

// Killing is what kills need of their drain. The functions are called concurrently.
type Killing struct {
	// Context is that of the killer's calls: it ends when the host is let go.
	Context context.Context
	Calls   *call.Group
	// Halted tells whether no further pod is to be signalled.
	Halted func() bool
	// Before is called right before a pod is signalled and may wait. Nil: nothing is.
	Before func(*Kill)
	// Seconds is the grace of a pod that is signalled now.
	Seconds func(*v1.Pod) int64
	// Kill is the embedder's killer.
	Kill func(ctx context.Context, pod *v1.Pod, seconds int64) (Result, error)
	// Final tells whether an error of the killer is the last word.
	Final func(error) bool
	// Earlier gives the kill of a pod in the drains before this one; nil: there is none.
	Earlier func(types.UID) *Kill
	// Signalled is told of each pod that is signalled now, Failed of the first
	// attempt of a pod that is going to be repeated, Ended of each pod that has ended or was
	// given up.
	Signalled, Ended func(*Kill)
	Failed           func(*Kill, error)
}

// Batch is the pods that are killed at the same moment.
//
// Each kill blocks, so each needs a goroutine; but most pods of a large node end
// at once, and a goroutine for each of them would be made for nothing. So a
// worker takes one pod after the other, and before it turns to one it sees to it
// that another worker is ready for the next: no pod waits for another's end, and
// there are only as many goroutines as kills that take their time.
type Batch struct {
	// Signalled is complete when each pod was signalled, or is not going to be; Done when
	// each has ended or was given up.
	Signalled, Done *call.Future[time.Time]

	killing              *Killing
	kills                []*Kill
	next                 atomic.Int64
	freeWorkers          atomic.Int64 // workers that are free to take the next pod
	unsignalled, running atomic.Int64
	signalled, done      func(time.Time, error)
}

// Start kills pods and does not wait. There is at least one.
func (killing *Killing) Start(kills []*Kill) *Batch {
	b := &Batch{killing: killing, kills: kills}
	b.Signalled, b.signalled = call.NewFuture[time.Time]()
	b.Done, b.done = call.NewFuture[time.Time]()
	b.unsignalled.Store(int64(len(kills)))
	b.running.Store(int64(len(kills)))
	b.startWorker()
	return b
}

// hire starts a worker.
func (b *Batch) startWorker() {
	b.freeWorkers.Add(1)
	var at atomic.Pointer[Kill]
	b.killing.Calls.Go(func() string { return at.Load().String() }, func() { b.work(&at) })
}

// String names the call of the killer for a pod; a nil kill is that of a worker which has
// no pod.
func (k *Kill) String() string {
	if k == nil {
		return "Options.Killer"
	}
	return "Options.Killer for pod " + k.Pod.Namespace + "/" + k.Pod.Name
}

// serve takes pods until there is none left. A killer that ends the goroutine does not
// end the batch: another worker was free for the next pod by then.
func (b *Batch) work(at *atomic.Pointer[Kill]) {
	for {
		n := int(b.next.Add(1)) - 1
		if n >= len(b.kills) {
			return
		}
		if b.freeWorkers.Add(-1) == 0 && n+1 < len(b.kills) {
			b.startWorker()
		}
		at.Store(b.kills[n])
		b.kill(b.kills[n])
		b.freeWorkers.Add(1)
	}
}

// kill sees one pod to its end.
func (b *Batch) kill(k *Kill) {
	defer countDown(&b.running, b.done)
	if b.signal(k) {
		b.killUntilEnded(k)
	}
}

// signal begins the kill of a pod; false: it is not to be signalled any more.
func (b *Batch) signal(k *Kill) bool {
	defer countDown(&b.unsignalled, b.signalled)
	if b.killing.Before != nil && !b.killing.Halted() {
		b.killing.Before(k)
	}
	if b.killing.Halted() {
		return false
	}
	k.setSignalled(b.killing.Seconds(k.Pod))
	b.killing.Signalled(k)
	return true
}

// count takes one from what is left, and completes a future with the last.
func countDown(left *atomic.Int64, complete func(time.Time, error)) {
	if left.Add(-1) == 0 {
		complete(time.Now(), nil)
	}
}

// insist calls the killer until the pod has ended, the killer has had its last word or
// the host is let go.
func (b *Batch) killUntilEnded(k *Kill) {
	var result Result
	var err error
	returned := false
	defer func() {
		if !returned { // the killer has ended the goroutine
			err = &call.PanicError{Call: k.String()}
		}
		k.setEnded(result, err)
		b.killing.Ended(k)
	}()
	for seconds := k.State().Seconds; ; seconds = k.secondsLeft() {
		var last bool
		returned = false
		result, last, err = b.killOnce(k, seconds)
		returned = true
		if err == nil || last || b.killing.Context.Err() != nil {
			return
		}
		if k.setRetriedErr(err) {
			b.killing.Failed(k, err)
		}
		if !b.waitBeforeRetry() {
			return
		}
	}
}

// pause waits before another attempt; false: the host is let go first.
func (b *Batch) waitBeforeRetry() bool {
	timer := time.NewTimer(retryPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-b.killing.Context.Done():
		return false
	}
}

// attempt calls the killer once, unless the pod still ends from an earlier drain and
// does so in time: then that end is its own. last tells that there is to be no other
// attempt. It is found out here, because the methods of the killer's error may panic too.
func (b *Batch) killOnce(k *Kill, seconds int64) (result Result, last bool, err error) {
	ctx := b.killing.Context
	defer call.Recover(ctx, k, &err)
	if before := b.killing.Earlier(Key(k.Pod)); before != nil {
		if until, ok := before.inFlight(); ok && k.join(before, until) {
			select {
			case <-before.Over():
			case <-ctx.Done():
				return Result{}, false, context.Cause(ctx)
			}
			if state := before.State(); state.Err == nil {
				return state.Result, false, nil
			}
			seconds = min(seconds, k.secondsLeft()) // the grace went on meanwhile
		}
	}
	result, err = b.killing.Kill(ctx, k.Pod, seconds)
	return result, err != nil && b.killing.Final(err), err
}
