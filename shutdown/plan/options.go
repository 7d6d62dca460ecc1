package plan

import "time"

// Options configures a plan, and the drain that follows it. The zero value is for a host
// without a limit and a drain that only kills pods. It differs from the kubelet in one
// thing: the pods of a bucket also have the time that lower buckets have left.
//
// A timeout of 0 means its default; a negative one means that the step has no time. A step
// that is not set in Steps has none either. If the host waits for less than the steps and the
// schedule need, [Budget.Fit] shortens the steps first.
type Options struct {
	// Limit is how long the host waits at most, counted from the announcement of its
	// shutdown. 0: no limit. Negative: it does not wait. For a manager it is the time
	// that the platform leaves, such as the 30 s of a spot machine: no longer delay
	// is requested from the host. The limit that the host itself reports applies too.
	Limit time.Duration
	// PriorityOf returns the priority of a class that is not built in, false if it is
	// not known. It is called for pods without spec.priority, must not block, and may
	// be called concurrently. Nil: no class is known.
	PriorityOf func(className string) (int32, bool)

	// Steps says which steps a drain has besides the kills. A manager sets it from its
	// own options.
	Steps Steps
	// PrepareTimeout is the longest wait, before the first list of pods, for what would
	// start pods again to be stopped; 0 means 2 s. It has at most half of what
	// the host leaves, and nothing else shortens it.
	PrepareTimeout time.Duration
	// HoldTimeout is the longest hold before the first bucket; 0 means 10 s.
	HoldTimeout time.Duration
	// PublishTimeout is the longest wait for the node's state to be published, before
	// the first bucket; 0 means 2 s.
	PublishTimeout time.Duration
	// UnmountTimeout is the time of a bucket for the unmount of its pods' volumes, after
	// its kills; 0 means 2 s.
	UnmountTimeout time.Duration
	// StatusesTimeout is the time of a bucket for its pods' final statuses, after the
	// unmounts; 0 means 1 s.
	StatusesTimeout time.Duration

	// NoRollOver gives the kubelet's behaviour: the pods of a bucket have the time of
	// their own bucket, counted from its start, and what they do not use is lost.
	NoRollOver bool
}

// Steps says which steps a drain has besides the kills. The time of each step is added to
// the pods' time in the delay that is requested from the host.
type Steps struct {
	Prepare   bool // what would start pods again is stopped before the first list of pods
	Hold      bool // a wait before the first bucket
	Publish   bool // the node's state is published before the first bucket
	Readiness bool // the pods of a bucket are marked as not ready before they are killed
	Unmount   bool // volumes are waited for after the kills of a bucket
	Statuses  bool // final statuses are waited for after the unmounts
}

// Cap returns d, or Limit if that is less. Of the Total of a budget it is the delay to
// request from the host. A negative Limit counts as 0.
func (o Options) Cap(d time.Duration) time.Duration {
	if o.Limit == 0 {
		return d
	}
	return min(d, max(o.Limit, 0))
}

// orDefault returns the duration that counts for a field of Options: the default for 0,
// and 0 for a negative value, or if the step is not used.
func orDefault(value, def time.Duration, used bool) time.Duration {
	switch {
	case !used || value < 0:
		return 0
	case value == 0:
		return def
	default:
		return value
	}
}
