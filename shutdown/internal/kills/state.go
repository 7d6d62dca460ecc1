package kills

import (
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// State is a copy of what is known of a kill.
type State struct {
	Bucket       int32     // the priority that names the bucket
	Seconds      int64     // the grace period that was granted first
	Signalled    bool      // the killer was called
	Started      time.Time // the first call of the killer; zero: never
	Shortened    time.Time // the end of the grace period that a later call has set; zero: none has
	Ended        time.Time // when the pod had ended; zero: it is not known to have ended
	Result       Result    // of the last call that has returned
	Err          error     // of that call; nil if it succeeded
	Acknowledged bool      // the API server has the final status, or Former
	Former       bool      // the pod has ended under a former agent, whose debt its final status is
}

// State returns what is known of the kill now.
func (k *Kill) State() State {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := State{
		Bucket:       k.bucket,
		Seconds:      k.seconds,
		Signalled:    k.phase >= signalled,
		Result:       k.result,
		Err:          k.err,
		Acknowledged: k.acknowledged,
		Former:       k.former,
	}
	if s.Signalled {
		s.Started = k.event.Add(k.started)
		if k.until-k.started < graceperiod.Duration(k.seconds) {
			s.Shortened = k.event.Add(k.until)
		}
	}
	if k.phase == ended {
		s.Ended = k.event.Add(k.ended)
	}
	return s
}
