package kills

import (
	"math"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// Key tells pods apart, also those that come back with the name of a former one.
func Key(pod *v1.Pod) types.UID {
	if pod.UID != "" {
		return pod.UID
	}
	return types.UID(pod.Namespace + "/" + pod.Name)
}

// Result is what a killer says of a pod that has ended.
type Result struct {
	Outcome string
	Status  *v1.PodStatus // nil: the killer does not tell
}

// The states of a kill, in order. One that is never signalled stays planned.
const (
	planned uint8 = iota
	signalled
	ended
)

// Kill is one pod of a drain: what was asked for it, and what came of that. There is
// one for each pod of the node, so it is kept small: moments count from the event of
// the drain. All methods may be called concurrently.
type Kill struct {
	Pod      *v1.Pod
	Priority int32 // of the pod
	Bucket   int32 // the priority that names its bucket

	event *time.Time // when the drain's event was received

	mu             sync.Mutex // guards all below
	state          uint8
	acknowledged   bool          // the API server has the final status
	seconds        int64         // the granted grace
	until          time.Duration // when the grace ends
	started, ended time.Duration
	result         Result
	err            error         // of the last attempt
	over           chan struct{} // closed at the end; nil: nobody has asked for it
	joined         *Kill         // of an earlier drain, until the end; nil: none
}

// State is what is known of a kill at some moment.
type State struct {
	Seconds      int64     // the granted grace
	Signalled    bool      // the killer was called
	Started      time.Time // when it was; zero: never
	Ended        time.Time // when the pod had ended, or its kill was given up; zero: not yet
	Result       Result
	Err          error // of the last attempt that failed; nil once one has succeeded
	Acknowledged bool  // the API server has the final status
}

// State gives what is known of the kill.
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

// begin records that the pod is signalled now, with this grace.
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

// failed records the error of an attempt that will be repeated, and tells whether it is the
// first one.
func (k *Kill) setRetriedErr(err error) (first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	first = k.err == nil
	k.err = err
	return first
}

// end records what came of the kill.
func (k *Kill) setEnded(result Result, err error) {
	now := time.Since(*k.event)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state, k.ended, k.result, k.err, k.joined = ended, now, result, err, nil
	if k.over != nil {
		close(k.over)
	}
}

// Over is closed when the pod has ended, or its kill was given up.
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

// left is how many whole seconds of the grace are left, 0 at least. 100 ms of timer lag
// are forgiven.
func (k *Kill) secondsLeft() int64 {
	now := time.Since(*k.event)
	k.mu.Lock()
	defer k.mu.Unlock()
	return max(int64((k.until-now+timerLag)/time.Second), 0)
}

// timerLag is how late a timer may be without costing a whole second of grace.
const timerLag = 100 * time.Millisecond

// inFlight tells whether the pod was signalled and has not ended, and when its grace
// ends.
func (k *Kill) inFlight() (until time.Time, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.event.Add(k.until), k.state == signalled
}

// takeOver gives the kill the end of the grace of another one of the same pod, unless
// its own comes earlier; false: it does. The kill that it has joined itself follows.
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

// join shortens the kill of an earlier drain that is still under way, should it be tried
// again there, and whatever that one has joined; or takes its end over, if that comes first.
func (k *Kill) join(before *Kill, until time.Time) (tookOver bool) {
	tookOver = k.shortenTo(until)
	own, _ := k.inFlight()
	k.mu.Lock()
	k.joined = before
	k.mu.Unlock()
	before.shortenTo(own)
	return tookOver
}

// HasEnded tells whether the pod is known to have ended: its killer said so without an
// error. A pod whose kill was given up may still run.
func (k *Kill) HasEnded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state == ended && k.err == nil
}

// Signalled tells whether the killer was called for the pod.
func (k *Kill) Signalled() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state != planned
}

// Acknowledge records that the API server has the final status, or needs none.
func (k *Kill) Acknowledge() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.acknowledged = true
}
