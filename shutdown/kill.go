package shutdown

import (
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// podKey tells pods apart, also those that return with the name of a former one.
func podKey(pod *v1.Pod) types.UID {
	if pod.UID != "" {
		return pod.UID
	}
	return types.UID(pod.Namespace + "/" + pod.Name)
}

// The states of a kill, in order. One that is skipped stays planned.
const (
	killPlanned uint8 = iota
	killSignalled
	killEnded
)

// kill is one pod of a drain: what was asked, and what came of it. There is one
// for each pod of the node, so it is kept small: moments count from the drain's
// event.
type kill struct {
	pod              *v1.Pod
	event            *time.Time // when the drain's event was received
	priority, bucket int32
	seconds          int64 // its grace

	mu             sync.Mutex // guards all below; the killer's goroutine writes it
	state          uint8
	handedIn       bool          // the final status was given to the reporter
	flushed        bool          // and is accepted
	until          time.Duration // when its grace ends
	started, ended time.Duration
	outcome        string
	status         *v1.PodStatus // at the end, as the killer knows it; nil: it does not
	err            error
	over           chan struct{} // closed at the end; nil: nobody has asked
}

// init works out what a pod of this priority is granted in the window of a bucket if
// it is killed now.
func (k *kill) init(pod *v1.Pod, priority int32, bucket plan.Bucket, w plan.Window, event *time.Time, now time.Time) {
	k.pod, k.event, k.priority, k.bucket = pod, event, priority, bucket.Priority
	k.seconds = w.Seconds(pod, now)
	k.until = saturatingAdd(max(now.Sub(*event), 0), graceperiod.Duration(k.seconds))
}

// report is what became of the pod so far: without an end and an outcome if it
// has not ended. False: the pod was never signalled.
func (k *kill) report() (r PodReport, signalled bool) {
	r = PodReport{
		Namespace:      k.pod.Namespace,
		Name:           k.pod.Name,
		UID:            k.pod.UID,
		Priority:       k.priority,
		Bucket:         k.bucket,
		GrantedSeconds: k.seconds,
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	r.Unflushed = !k.flushed
	if k.state >= killSignalled {
		r.Started = k.event.Add(k.started)
	}
	if k.state == killEnded {
		r.Ended, r.Outcome = k.event.Add(k.ended), k.outcome
	}
	if k.err != nil {
		r.Error = k.err.Error()
	}
	return r, k.state >= killSignalled
}

// begin notes that the killer is called.
func (k *kill) begin() {
	now := time.Since(*k.event)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state, k.started = killSignalled, now
}

// end notes what came of the kill.
func (k *kill) end(result KillResult, err error) {
	now := time.Since(*k.event)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state, k.ended, k.outcome, k.err = killEnded, now, result.Outcome, err
	k.status = result.Status
	if k.over != nil {
		close(k.over)
	}
}

// done is closed when the pod has ended.
func (k *kill) done() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over == nil {
		k.over = make(chan struct{})
		if k.state == killEnded {
			close(k.over)
		}
	}
	return k.over
}

// inFlight tells whether the pod was signalled and has not ended, and until when
// it may take.
func (k *kill) inFlight() (until time.Time, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.event.Add(k.until), k.state == killSignalled
}

// shorten gives the kill the earlier end of the one that it joins, and tells
// whether its own was earlier.
func (k *kill) shorten(until time.Time) bool {
	other := until.Sub(*k.event)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.until < other {
		return true
	}
	k.until = other
	return false
}

// spared tells whether the pod was never signalled.
func (k *kill) spared() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state == killPlanned
}

// toFlush tells whether the pod has ended, or does so with its host, and its final
// status is not accepted, and whether it was handed in.
func (k *kill) toFlush(withHost bool) (unflushed, handedIn bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ended := k.state == killEnded && k.err == nil || withHost && k.state >= killSignalled
	return ended && !k.flushed, k.handedIn
}

// handIn notes that the final status is handed in, and gives what the killer knows
// of it; nil: nothing.
func (k *kill) handIn() *v1.PodStatus {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.handedIn = true
	return k.status
}

// acknowledge says that the final status is accepted.
func (k *kill) acknowledge() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.flushed = true
}
