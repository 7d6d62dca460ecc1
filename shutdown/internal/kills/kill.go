package kills

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/podkey"
	"github.com/kubegrace/kubegrace/internal/times"
)

// Key identifies a pod, see [podkey.Of].
func Key(pod *v1.Pod) types.UID { return podkey.Of(pod) }

// Result is what a killer returns for a pod that has ended.
type Result struct {
	Outcome string
	Status  *v1.PodStatus // nil: the killer does not report it
}

// The phases of a kill, in order. A pod that is never signalled stays planned.
const (
	planned uint8 = iota
	signalled
	ended
)

// Kill is the kill of one pod. There is one for each pod, whoever asks for it: a drain that
// overtakes another, and a shutdown that follows a cancelled one, find the kill that is under way
// and only shorten it. There is one for each pod of a node, so it is kept small: times are stored
// as durations since the event of the first shutdown. All methods may be called concurrently.
type Kill struct {
	Priority int32 // of the pod

	pod   atomic.Pointer[v1.Pod]
	event *time.Time // when the event of the shutdown that killed the pod first was received

	mu       sync.Mutex // guards all below
	phase    uint8
	restored bool   // it comes from the record of a former agent, which may have signalled the pod
	counted  bool   // Count was called
	batches  int16  // that see to the pod
	bucket   int32  // the priority that names its bucket
	passage  uint64 // the newest drain that has picked the pod
	grace
	calls
	end
}

// grace is the grace period of a pod that was signalled.
type grace struct {
	seconds int64 // that was granted first
	started time.Duration
	until   time.Duration // its end, which only moves earlier
}

// calls are the calls of the killer for a pod.
type calls struct {
	calling   int16         // that are under way
	retried   bool          // a failed call was followed by another
	callUntil time.Duration // the end of the grace period that the shortest call under way knows
	changed   chan struct{} // closed when a call returns or the pod has ended; nil: nobody waits
}

// end is what the killer has said of the end of a pod.
type end struct {
	ended        time.Duration
	result       Result // of the last call that has returned
	err          error  // of that call
	acknowledged bool   // the API server has the final status, or former
	former       bool   // the pod has ended under a former agent
}

// Pod returns the pod. For a pod of a former agent's record this is what was on record until the
// pod is listed.
func (k *Kill) Pod() *v1.Pod { return k.pod.Load() }

// String names the call of the killer for a pod. A nil kill stands for a worker without a pod.
func (k *Kill) String() string {
	if k == nil {
		return "Options.Killer"
	}
	return "Options.Killer for pod " + k.Pod().Namespace + "/" + k.Pod().Name
}

// HasEnded reports whether the pod is known to have ended, because the killer has returned
// without an error. A pod whose kill was given up may still run.
func (k *Kill) HasEnded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.phase == ended
}

// Signalled reports whether the killer was called for the pod, or is about to be.
func (k *Kill) Signalled() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.phase != planned
}

// UnderWay reports whether the pod was signalled and is waited for. A pod that is not known to have
// ended is not waited for any more once its kill was given up: nobody will tell of its end.
func (k *Kill) UnderWay() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.phase == signalled && k.batches > 0
}

// Left returns the seconds that are left to a pod that was signalled, rounded up; false if it was
// not.
func (k *Kill) Left() (seconds int64, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.phase != signalled {
		return 0, false
	}
	left := max(k.until-k.now(), 0)
	seconds = int64(left / time.Second)
	if left%time.Second > times.Lag {
		seconds++
	}
	return seconds, true
}

// Acknowledge records that the API server has the final status, or that it needs none.
func (k *Kill) Acknowledge() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.acknowledged = true
}

// Acknowledged reports whether Acknowledge was called.
func (k *Kill) Acknowledged() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.acknowledged
}

// Count returns true in its first call, so that the metrics count each pod once.
func (k *Kill) Count() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.counted
	k.counted = true
	return !before
}

// mayNeed reports whether a pod that is not listed is to be killed all the same: it was
// signalled, or may have been by a former agent, and is not known to have ended.
func (k *Kill) mayNeed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.phase == signalled || k.restored && k.phase == planned
}

// take picks the pod for a drain and a bucket. It returns false if the pod has ended, or if this
// drain or a newer one has picked it.
func (k *Kill) take(passage uint64, bucket int32) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.phase == ended || k.passage >= passage {
		return false
	}
	k.passage = passage
	if k.phase == planned {
		k.bucket = bucket
	}
	return true
}

// signal records that the pod is to end within a grace period from now, and that a batch sees to it
// until leave. It returns true if it is the first such request. A later one may only shorten the
// grace period.
func (k *Kill) signal(seconds int64) (first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.batches++
	now := k.now()
	until := time.Duration(math.MaxInt64)
	if grace := graceperiod.Duration(seconds); grace <= math.MaxInt64-now {
		until = now + grace
	}
	if k.phase != planned {
		k.until = min(k.until, until)
		return false
	}
	k.phase, k.started, k.seconds, k.until = signalled, now, seconds, until
	return true
}

// leave records that a batch no longer sees to the pod.
func (k *Kill) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.batches--
}

// now returns the time since the event. The mutex is held.
func (k *Kill) now() time.Duration { return max(time.Since(*k.event), 0) }

// turn is what to do next about a signalled pod: nothing, since it has ended; to wait until changed
// is closed, since a call under way knows the end of the grace period; or to call the killer with
// seconds, and then endCall with until.
type turn struct {
	over    bool
	changed <-chan struct{}
	seconds int64
	until   time.Duration
}

func (k *Kill) nextTurn() turn {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.phase == ended:
		return turn{over: true}
	case k.calling > 0 && k.callUntil <= k.until:
		if k.changed == nil {
			k.changed = make(chan struct{})
		}
		return turn{changed: k.changed}
	default:
		k.calling++
		k.callUntil = k.until
		return turn{seconds: k.secondsLeft(k.now()), until: k.until}
	}
}

// secondsLeft returns the whole seconds that are left of the grace period, at least 0.
func (g *grace) secondsLeft(now time.Duration) int64 {
	if g.until == math.MaxInt64 {
		return max(g.seconds-int64((now-g.started)/time.Second), 0)
	}
	return times.WholeSeconds(g.until - now)
}

// endCall records the result of the call of a turn. It returns true if this call is the one that
// says that the pod has ended.
func (k *Kill) endCall(t turn, result Result, err error) (hasEnded bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.changed != nil {
		close(k.changed)
		k.changed = nil
	}
	k.calling--
	if t.until == k.callUntil {
		k.callUntil = math.MaxInt64 // the other calls under way may know a later end
	}
	switch {
	case k.phase == ended:
		return false
	case err != nil:
		k.result, k.err = result, err
		return false
	default:
		k.phase, k.ended, k.result, k.err = ended, k.now(), result, nil
		return true
	}
}

// reportRetry returns true in its first call.
func (k *Kill) reportRetry() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.retried
	k.retried = true
	return !before
}
