package plan

import (
	"time"
)

// The spans of [Options] where they are 0 and their hook is there.
const (
	// DefaultHoldTimeout bounds the hold before the first bucket.
	DefaultHoldTimeout = 10 * time.Second
	// DefaultPublishTimeout bounds the wait for the node's state to be published.
	DefaultPublishTimeout = 2 * time.Second
	// DefaultReadinessReserve bounds, in each bucket, the wait for its pods to be out
	// of their services.
	DefaultReadinessReserve = time.Second
	// DefaultUnmountReserve is what each bucket has for the unmount of its volumes.
	DefaultUnmountReserve = 2 * time.Second
	// DefaultFlushReserve is what each bucket has for its pods' final statuses.
	DefaultFlushReserve = time.Second
	// DefaultReleaseMargin is how long before the host's own end the lock is released.
	DefaultReleaseMargin = 500 * time.Millisecond
)

// Options shapes a plan and the drain that follows it. The zero value plans the kills
// alone, for a host without a limit; it differs from the kubelet in that unused time
// rolls over.
//
// HoldTimeout, PublishTimeout, the reserves and ReleaseMargin mean their defaults
// where they are 0, and none where they are negative. Without their hook in Hooks,
// the first five count as none, whatever they say.
type Options struct {
	// Limit is how long the host waits at most, from the announcement of its
	// shutdown on. 0: no limit. Negative: it does not wait at all. In a manager it is
	// what the platform leaves, a spot machine's 30 s for instance; the host is never
	// asked for more, and its own limit counts beside it.
	Limit time.Duration
	// PriorityOf gives the value of a priority class that is not built in, for
	// pods without an explicit priority; false: not known. It must not block, and
	// may be called from several goroutines at once. Nil: none is known.
	PriorityOf func(className string) (int32, bool)
	// StaticPods is the priority of static pods that say nothing of it, and of
	// their mirrors. Nil: that of system-node-critical, 2000001000. A pointer to 0
	// is the kubelet's behaviour.
	StaticPods *int32

	// Hooks says what is done beside the kills. A manager sets it from its own
	// options.
	Hooks Hooks
	// HoldTimeout bounds the hold; 0 means [DefaultHoldTimeout].
	HoldTimeout time.Duration
	// PublishTimeout bounds the publishing of the node's state, before the first
	// bucket; 0 means [DefaultPublishTimeout].
	PublishTimeout time.Duration
	// ReadinessReserve bounds the readiness marks of a bucket, before its kills; 0
	// means [DefaultReadinessReserve].
	ReadinessReserve time.Duration
	// UnmountReserve is the time of a bucket for the unmount of its volumes, after
	// its kills; 0 means [DefaultUnmountReserve].
	UnmountReserve time.Duration
	// FlushReserve is the time of a bucket for its final statuses, after the
	// unmount; 0 means [DefaultFlushReserve].
	FlushReserve time.Duration
	// ReleaseMargin is how long before the host's own end the lock is released; 0
	// means [DefaultReleaseMargin]. It is a tenth of the host's limit at most.
	ReleaseMargin time.Duration

	// NoRollOver is the kubelet's behaviour: time that a bucket leaves unused is
	// lost to the later ones.
	NoRollOver bool
}

// Hooks says which of the things that a drain does beside the kills there are. The
// time of each comes on top of the pods' own and is asked of the host.
type Hooks struct {
	Hold      bool // somebody is waited for before the first bucket
	Publish   bool // the node's state is published before the first bucket
	Readiness bool // pods are taken out of their services before they are killed
	Unmount   bool // volumes are waited for after the kills of a bucket
	Statuses  bool // final statuses are waited for after that
}

// span is a span of Options as it counts.
func span(asked, def time.Duration, used bool) time.Duration {
	switch {
	case !used || asked < 0:
		return 0
	case asked == 0:
		return def
	default:
		return asked
	}
}

// reserve is what a bucket with pods' time has beside it.
func (o Options) reserve() Reserve {
	return Reserve{
		Readiness: span(o.ReadinessReserve, DefaultReadinessReserve, o.Hooks.Readiness),
		Unmount:   span(o.UnmountReserve, DefaultUnmountReserve, o.Hooks.Unmount),
		Statuses:  span(o.FlushReserve, DefaultFlushReserve, o.Hooks.Statuses),
	}
}
