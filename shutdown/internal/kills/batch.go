package kills

import (
	"context"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/call"
)

// retryPause is the pause between two calls for the same pod.
const retryPause = time.Second

// Killing is what a batch needs of its drain. The functions are called concurrently.
type Killing struct {
	// Context is the context of the killer's calls. It ends when the host is released.
	Context context.Context
	// RetryUntil is when a call that fails is not followed by another any more. Zero: the end of
	// Context.
	RetryUntil time.Time
	Calls      *call.Group
	// Unless calls signal, which does not block, unless no further pod is to be signalled. It reports
	// whether it has.
	Unless func(signal func()) bool
	// Before is called right before a pod is signalled and may block. Nil: nothing is called.
	Before func(*Kill)
	// Seconds returns the grace period of a pod that is signalled now.
	Seconds func(*v1.Pod) int64
	// Kill calls the embedder's killer.
	Kill func(ctx context.Context, pod *v1.Pod, seconds int64) (Result, error)
	// Final reports whether no call is to follow an error of the killer.
	Final func(error) bool
	// Signalled is called when a pod is signalled for the first time, and Ended, once, when it has
	// ended. Failed is called for a pod when a call has failed for the first time and another one
	// follows. GaveUp is called when this batch no longer waits for a pod that is not known to have
	// ended.
	Signalled, Ended func(*Kill)
	Failed, GaveUp   func(*Kill, error)
}

// Batch is a set of pods that are killed at the same time.
//
// A kill blocks until the pod has ended, so it needs a goroutine of its own. But most pods of a
// large node end at once, and a new goroutine for each would be waste. So a worker takes one pod
// after the other. Before it starts a kill it makes sure that another worker is free for the next
// pod: no pod waits for the end of another, and there are only as many goroutines as kills that
// take time.
type Batch struct {
	// Signalled completes when each pod was signalled, or is not to be signalled any more. Done
	// completes when each pod has ended or was given up.
	Signalled, Done *call.Future[time.Time]

	killing              *Killing
	kills                []*Kill
	next                 atomic.Int64
	freeWorkers          atomic.Int64 // workers that can take the next pod
	unsignalled, running atomic.Int64
	signalled, done      func(time.Time, error)
}

// Start kills the pods of kills, of which there is at least one. It does not wait.
func (killing *Killing) Start(kills []*Kill) *Batch {
	b := &Batch{killing: killing, kills: kills}
	b.Signalled, b.signalled = call.NewFuture[time.Time]()
	b.Done, b.done = call.NewFuture[time.Time]()
	b.unsignalled.Store(int64(len(kills)))
	b.running.Store(int64(len(kills)))
	b.startWorker()
	return b
}

// startWorker starts a worker.
func (b *Batch) startWorker() {
	b.freeWorkers.Add(1)
	var at atomic.Pointer[Kill]
	b.killing.Calls.Go(func() string { return at.Load().String() }, func() { b.work(&at) })
}

// work takes pods until there is none left. If the killer ends the goroutine, another worker
// was free for the next pod by then.
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

// kill kills one pod and waits for its end.
func (b *Batch) kill(k *Kill) {
	if b.signal(k) {
		b.seeTo(k, nil)
	} else {
		countDown(&b.running, b.done)
	}
}

// seeTo waits for the end of a pod that was signalled. err is that of the call before; nil: there was
// none. If the killer ends the goroutine, another one goes on.
func (b *Batch) seeTo(k *Kill, err error) {
	returned := false
	defer func() {
		if !returned {
			b.killing.Calls.Go(k.String, func() { b.seeTo(k, &call.PanicError{Call: k.String()}) })
			return
		}
		if k.leave(); err != nil {
			b.killing.GaveUp(k, err)
		}
		countDown(&b.running, b.done)
	}()
	err = b.killUntilEnded(k, err)
	returned = true
}

// signal marks a pod as signalled. It returns false if no pod is to be signalled any more.
func (b *Batch) signal(k *Kill) bool {
	defer countDown(&b.unsignalled, b.signalled)
	if b.killing.Before != nil {
		b.killing.Before(k)
	}
	first := false
	if !b.killing.Unless(func() { first = k.signal(b.killing.Seconds(k.Pod())) }) {
		return false
	}
	if first {
		b.killing.Signalled(k)
	}
	return true
}

// countDown decrements left and completes a future when it reaches 0.
func countDown(left *atomic.Int64, complete func(time.Time, error)) {
	if left.Add(-1) == 0 {
		complete(time.Now(), nil)
	}
}

// killUntilEnded calls the killer until the pod has ended, an error is final, or the host is
// released. While a call of another drain is under way whose grace period ends no later, it waits
// for that call instead. err is that of the call before; nil: there was none. It returns the error with
// which it has given up; nil: the pod has ended.
func (b *Batch) killUntilEnded(k *Kill, err error) error {
	for last := false; ; {
		if err != nil {
			if last || b.killing.Context.Err() != nil || b.killing.isLate() {
				return err
			}
			if k.reportRetry() {
				b.killing.Failed(k, err)
			}
			if !b.waitBeforeRetry() {
				return err
			}
		}
		switch t := k.nextTurn(); {
		case t.over:
			return nil
		case t.changed == nil:
			if last, err = b.callOnce(k, t); err == nil {
				return nil
			}
		default:
			select {
			case <-t.changed:
				err = nil
			case <-b.killing.Context.Done():
				return context.Cause(b.killing.Context)
			}
		}
	}
}

// isLate reports whether no call is to follow one that has failed.
func (killing *Killing) isLate() bool {
	return !killing.RetryUntil.IsZero() && !time.Now().Before(killing.RetryUntil)
}

// waitBeforeRetry waits for retryPause. It returns false if the host is released first.
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

// callOnce calls the killer once and records the result, also if the killer ends the goroutine.
// last says that no call is to follow the error.
func (b *Batch) callOnce(k *Kill, t turn) (last bool, err error) {
	var result Result
	returned := false
	defer func() {
		if !returned { // the killer has ended the goroutine
			err = &call.PanicError{Call: k.String()}
		}
		if k.endCall(t, result, err) {
			b.killing.Ended(k)
		}
	}()
	result, last, err = b.callKiller(k, t.seconds)
	returned = true
	return last, err
}

// callKiller calls the killer and turns a panic into an error. last is computed here, because
// methods of the killer's error are the embedder's code and may panic too.
func (b *Batch) callKiller(k *Kill, seconds int64) (result Result, last bool, err error) {
	defer call.Recover(b.killing.Context, k, &err)
	result, err = b.killing.Kill(b.killing.Context, k.Pod(), seconds)
	return result, err != nil && b.killing.Final(err), err
}
