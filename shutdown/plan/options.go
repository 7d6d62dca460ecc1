package plan

import "time"

// Options configures a plan and its drain. The zero value is for a host without a limit and a drain that
// only kills pods. It differs from the kubelet in one way: pods may also use the time that lower buckets left
// unused.
//
// A timeout of 0 means its default; a negative one means 0. Steps that are not set in Steps get no time. If
// the host grants too little, [Budget.Fit] shortens the steps first, and the pods only if that is not enough.
type Options struct {
	// Limit is the longest delay that the host grants, counted from the announcement of its shutdown.
	// 0: no limit. Negative: no delay. For a manager it is the limit of the platform, such as the 30 s of
	// a spot machine: the manager never requests a longer delay from the host. The limit that the host
	// reports applies too.
	Limit time.Duration
	// PriorityOf returns the priority of a priority class that is not built in, and false if it is
	// unknown. It is called for pods without spec.priority. It must not block, and may be called
	// concurrently. A panic reaches the caller of [New] or [Options.Priority]; a manager recovers it.
	// Nil: every such class is unknown.
	PriorityOf func(className string) (int32, bool)

	// Steps are the steps of a drain besides the kills. A manager sets them from its own options.
	Steps Steps
	// PrepareTimeout is the timeout of Prepare; 0 means 2 s. Prepare gets at most half of the host's
	// time, and is not shortened otherwise.
	PrepareTimeout time.Duration
	// HoldTimeout is the timeout of the hold before the first bucket; 0 means 10 s.
	HoldTimeout time.Duration
	// PublishTimeout is the timeout of publishing the node state, before the first bucket; 0 means 2 s.
	PublishTimeout time.Duration
	// UnmountTimeout is each bucket's time for the unmounts of its pods' volumes, after the kills; 0
	// means 2 s.
	UnmountTimeout time.Duration
	// StatusesTimeout is each bucket's time for its pods' final statuses, after the unmounts; 0 means
	// 1 s.
	StatusesTimeout time.Duration

	// NoRollOver gives the kubelet's behaviour: pods have the time of their own bucket, counted from the
	// bucket's start, and time that a bucket does not use is lost.
	NoRollOver bool
}

// Steps says which steps a drain has besides the kills. The time of each is requested from the host in addition
// to the pods' time.
type Steps struct {
	Prepare   bool // before the first list of pods, to stop whatever would start pods again
	Hold      bool // a wait before the first bucket
	Publish   bool // publishing the node state, before the first bucket
	Readiness bool // marking the pods of a bucket as not ready, before the kills
	Unmount   bool // waiting for volumes, after the kills of a bucket
	Statuses  bool // waiting for final statuses, after the unmounts
}

// Cap returns d or Limit, whichever is less. Pass [Budget.Total] for the delay to request from the host. A
// Limit of 0 means that there is no limit, and a negative Limit means that there is no time.
func (o Options) Cap(d time.Duration) time.Duration {
	if o.Limit == 0 {
		return d
	}
	return min(d, max(o.Limit, 0))
}

// stepTime returns the time of a step: its timeout, or the default if the timeout is 0. A negative timeout means 0. A step
// that the drain does not have gets no time.
func stepTime(hasStep bool, timeout, defaultTimeout time.Duration) time.Duration {
	switch {
	case !hasStep || timeout < 0:
		return 0
	case timeout == 0:
		return defaultTimeout
	default:
		return timeout
	}
}
