package statelog

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/podkey"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// This file rejects entries that no agent writes, so that a damaged log cannot mislead a drain. The names in
// its errors are those in the file.

// waitSlack is how much later than WaitEnd a bucket may end: if a host grants no more than the pods' time, WaitEnd is
// earlier than the end of the last bucket, to leave time for the release of the lock.
const waitSlack = 100 * time.Millisecond

// maxTime is the latest possible end of a grace period: one that begins 292 years after the boot, and lasts for 292 years. A
// time.Duration cannot be longer than that.
func maxTime() time.Time { return bootTime().Add(math.MaxInt64).Add(math.MaxInt64) }

// minTime is the earliest possible time. What happened in an earlier boot is stored with times before this boot.
func minTime() time.Time { return bootTime().Add(-math.MaxInt64).Add(-math.MaxInt64) }

// checkTime returns an error if t is before from or after until. name is what the error calls t.
func checkTime(name string, t, from, until time.Time) error {
	if t.Before(from) || t.After(until) {
		return fmt.Errorf("%s %s is not from %s to %s", name, t.Format(time.RFC3339Nano), from.Format(time.RFC3339Nano), until.Format(time.RFC3339Nano))
	}
	return nil
}

// checkOptional returns an error if t is before from or after until. A zero time, which means none, is no error.
func checkOptional(name string, t, from, until time.Time) error {
	if t.IsZero() {
		return nil
	}
	return checkTime(name, t, from, until)
}

// checkShutdown returns why a shutdown is damaged; nil: it is not. Nothing in it may have happened later than now. For the
// log of another boot, whose times cannot be compared with the present, now is maxTime.
func checkShutdown(s *node.Shutdown, now time.Time) error {
	hasEnded, isAnnounced, hasTimetable := !s.Ended.IsZero(), len(s.Announced) > 0, s.Timetable != nil
	switch {
	case s.Number < 1 || s.Number > math.MaxInt32:
		return fmt.Errorf("number %d is not from 1 to %d", s.Number, math.MaxInt32)
	case s.Cancelled && (!hasEnded || isAnnounced):
		return errors.New("cancelled is true, but it has not ended or is announced")
	case hasTimetable && !hasEnded && !isAnnounced:
		return errors.New("it has a timetable, but is neither announced nor over")
	case s.DoneBuckets < 0 || s.DoneBuckets > 0 && !hasTimetable:
		return fmt.Errorf("done is %d, with a timetable: %v", s.DoneBuckets, hasTimetable)
	}
	earliest := bootTime()
	if !isAnnounced { // the shutdown may be of an earlier boot
		earliest = minTime()
	}
	errs := []error{
		checkTime("began", s.Began, earliest, now), checkOptional("ended", s.Ended, s.Began, now),
		checkOptional("hostEnd", s.HostEnd, bootTime(), maxTime()),
	}
	for _, a := range s.Announced {
		errs = append(errs, checkOptional("at of an announcement", a.At, bootTime(), now), checkOptional("deadline of an announcement", a.Deadline, bootTime(), maxTime()))
	}
	if hasTimetable {
		errs = append(errs, checkTimetable(s, now))
	}
	return errors.Join(errs...)
}

// checkTimetable returns why the timetable of a shutdown is damaged; nil: it is not. now is the current time, or maxTime for the
// log of another boot.
func checkTimetable(s *node.Shutdown, now time.Time) error {
	t := s.Timetable
	errs := []error{t.Check()}
	if count := len(t.Budget.Buckets); count > 0 {
		if s.DoneBuckets > count {
			errs = append(errs, fmt.Errorf("done is %d of %d buckets", s.DoneBuckets, count))
		}
		if lastEnd := t.Budget.Buckets[count-1].End; lastEnd-waitSlack > t.Budget.WaitEnd {
			errs = append(errs, fmt.Errorf("budget.waitEndNanoseconds %d is before the last bucket's endNanoseconds %d", t.Budget.WaitEnd, lastEnd))
		}
	}
	return errors.Join(append(errs, checkTime("received of the timetable", t.Received, bootTime(), now))...)
}

// checkPod returns why a pod is damaged; nil: it is not. now is the current time, or maxTime for the log of another boot.
func checkPod(p *node.Pod, now time.Time) error {
	isSignalled, hasDeadline, hasPolicy := !p.Signalled.IsZero(), !p.Deadline.IsZero(), p.Policy != ""
	hasOwnObject := p.Object != nil && p.Object.Namespace == p.Namespace && p.Object.Name == p.Name && podkey.Of(p.Object) == p.Key
	switch {
	case p.Object == nil:
		return errors.New("it has no object")
	case !hasOwnObject:
		return fmt.Errorf("its object is that of pod %s with the key %q", podkey.Name(p.Object), podkey.Of(p.Object))
	case p.GrantedSeconds < 0:
		return fmt.Errorf("grantedSeconds %d must not be negative", p.GrantedSeconds)
	case isSignalled && !p.Policy.IsKnown():
		return fmt.Errorf("policy %q is not known", p.Policy)
	case p.SignalledBy < 0 || p.SignalledBy > math.MaxInt32:
		return fmt.Errorf("shutdown %d is not from 0 to %d", p.SignalledBy, math.MaxInt32)
	case hasDeadline != isSignalled || hasPolicy != isSignalled:
		return errors.New("signalled, deadline and policy must be all set or all unset")
	}
	for _, number := range p.StillRanIn {
		if number < 1 || number > math.MaxInt32 {
			return fmt.Errorf("joined %d is not from 1 to %d", number, math.MaxInt32)
		}
	}
	if !p.Ended.IsZero() { // the pod may be of an earlier boot
		return errors.Join(checkTime("ended", p.Ended, minTime(), now),
			checkOptional("signalled", p.Signalled, minTime(), maxTime()), checkOptional("deadline", p.Deadline, minTime(), maxTime()))
	}
	return errors.Join(checkOptional("signalled", p.Signalled, bootTime(), now),
		checkOptional("deadline", p.Deadline, p.Signalled, p.Signalled.Add(graceperiod.Duration(p.GrantedSeconds))))
}
