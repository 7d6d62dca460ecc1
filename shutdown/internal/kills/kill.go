package kills

import (
	"math"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// Key identifies a pod: by its UID, or by its namespace and name if it has none.
func Key(pod *v1.Pod) types.UID {
	if pod.UID != "" {
		return pod.UID
	}
	return types.UID(pod.Namespace + "/" + pod.Name)
}

// Result is what a killer returns for a pod that has ended.
type Result struct {
	Outcome string
	Status  *v1.PodStatus // nil: the killer does not report it
}

// The states of a kill, in order. A pod that is never signalled stays planned.
const (
	planned uint8 = iota
	signalled
	ended
)

// Kill is the kill of one pod in a drain: the request and its result. There is one for each pod
// of the node, so it is kept small: times are stored as durations since the event of the drain.
// All methods may be called concurrently.
type Kill struct {
	Pod      *v1.Pod
	Priority int32 // of the pod
	Bucket   int32 // the priority that names its bucket

	event *time.Time // when the drain's event was received

	mu             sync.Mutex // guards all below
	state          uint8
	acknowledged   bool          // the API server has the final status
	seconds        int64         // the granted grace period
	until          time.Duration // the end of the grace period
	started, ended time.Duration
	result         Result
	err            error         // of the last attempt
	over           chan struct{} // closed when state is ended; nil: Over was not called
	joined         *Kill         // the kill of an earlier drain that this one waits for; nil: none
}

// State is a copy of what is known of a kill.
type State struct {
	Seconds      int64     // the granted grace period
	Signalled    bool      // the killer was called
	Started      time.Time // the first call of the killer; zero: never
	Ended        time.Time // when the pod had ended or was given up; zero: not yet
	Result       Result
	Err          error // of the last attempt; nil if it succeeded
	Acknowledged bool  // the API server has the final status
}

// State returns what is known of the kill now.
func (k *Kill) State() State {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := State{
		Seconds:      k.seconds,
		Signalled:    k.state >= signalled,
		Result:       k.result,
		Err:          k.err,
		Acknowledged: k.acknowledged,
	}
	if s.Signalled {
		s.Started = k.event.Add(k.started)
	}
	if k.state == ended {
		s.Ended = k.event.Add(k.ended)
	}
	return s
}

// setSignalled records that the pod is signalled now, with this grace period.
func (k *Kill) setSignalled(seconds int64) {
	now := max(time.Since(*k.event), 0)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state, k.started, k.seconds = signalled, now, seconds
	k.until = math.MaxInt64
	if grace := graceperiod.Duration(seconds); grace <= math.MaxInt64-now {
		k.until = now + grace
	}
}

// setRetriedErr records the error of an attempt that another one follows. It returns whether this
// is the first such error.
func (k *Kill) setRetriedErr(err error) (first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	first = k.err == nil
	k.err = err
	return first
}

// setEnded records the result of the kill.
func (k *Kill) setEnded(result Result, err error) {
	now := time.Since(*k.event)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state, k.ended, k.result, k.err, k.joined = ended, now, result, err, nil
	if k.over != nil {
		close(k.over)
	}
}

// Over returns a channel that is closed when the pod has ended or was given up.
func (k *Kill) Over() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over == nil {
		k.over = make(chan struct{})
		if k.state == ended {
			close(k.over)
		}
	}
	return k.over
}

// secondsLeft returns the whole seconds that are left of the grace period, at least 0. It
// tolerates 100 ms of timer lag.
func (k *Kill) secondsLeft() int64 {
	now := time.Since(*k.event)
	k.mu.Lock()
	defer k.mu.Unlock()
	return max(int64((k.until-now+timerLag)/time.Second), 0)
}

// timerLag is how late a timer may fire without costing a whole second of grace.
const timerLag = 100 * time.Millisecond

// inFlight reports whether the pod was signalled and has not ended, and returns the end of its
// grace period.
func (k *Kill) inFlight() (until time.Time, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.event.Add(k.until), k.state == signalled
}

// shortenTo moves the end of the grace period to an earlier time, also for the kill that this one
// waits for. It returns false if the end is earlier already.
func (k *Kill) shortenTo(until time.Time) bool {
	other := until.Sub(*k.event)
	k.mu.Lock()
	if k.until < other {
		k.mu.Unlock()
		return false
	}
	k.until = other
	joined := k.joined
	k.mu.Unlock()
	if joined != nil {
		joined.shortenTo(until)
	}
	return true
}

// join makes this kill wait for one of the same pod in an earlier drain. Both then have the
// earlier end of their two grace periods, which counts if the earlier drain has to try again.
// tookOver reports whether this kill got its end from the other one.
func (k *Kill) join(before *Kill, until time.Time) (tookOver bool) {
	tookOver = k.shortenTo(until)
	ownUntil, _ := k.inFlight()
	k.mu.Lock()
	k.joined = before
	k.mu.Unlock()
	before.shortenTo(ownUntil)
	return tookOver
}

// HasEnded reports whether the pod is known to have ended, because the killer returned without an
// error. A pod whose kill was given up may still run.
func (k *Kill) HasEnded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state == ended && k.err == nil
}

// Signalled reports whether the killer was called for the pod, or is about to be.
func (k *Kill) Signalled() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state != planned
}

// Acknowledge records that the API server has the final status, or that it needs none.
func (k *Kill) Acknowledge() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.acknowledged = true
}
