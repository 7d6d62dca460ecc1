package shutdown

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// leastFlush is what a second attempt needs to be worth making.
const leastFlush = 100 * time.Millisecond

// flush waits until the final statuses of the pods that have ended are accepted, for
// as long as the reserve lasts: pods that end early do not make a dead API server
// cost more. What is not acknowledged is flushed again at the end, with what is left
// of the reserve, and named in the report.
func (d *drain) flush(kills []*kill, until time.Time) {
	if d.m.opts.Reporter == nil {
		return
	}
	ended, fresh := d.unflushed(kills)
	if len(ended) == 0 || !fresh && d.keeps() && d.reserve < leastFlush {
		return
	}
	if d.keeps() {
		began := time.Now()
		if reserved := began.Add(d.reserve); reserved.Before(until) {
			until = reserved
		}
		defer func() { d.reserve -= time.Since(began) }()
	}
	pods := d.finals(ended)
	err := d.within(d.ctx, until, func(ctx context.Context) error {
		return d.m.opts.Reporter.FlushPods(ctx, pods)
	})
	if err != nil {
		d.note(fmt.Errorf("failed to flush the final statuses of %d pods: %w", len(pods), err))
	}
	acknowledge(ended, err)
}

// flushLast flushes what is left. Pods that have ended since their bucket's flush,
// or that had none, bring a reserve of their own.
func (d *drain) flushLast() {
	d.ending = !d.local && !d.retired()
	if _, fresh := d.unflushed(d.roster.all()); fresh {
		d.reserve = d.statusReserve()
	}
	d.flush(d.roster.all(), d.table.Release())
}

// keeps tells whether a reserve is kept; if none is wished, a flush has what the pods
// leave.
func (d *drain) keeps() bool { return d.statusReserve() > 0 }

// statusReserve is the most that a bucket of the drain keeps for final statuses.
func (d *drain) statusReserve() time.Duration {
	var most time.Duration
	for _, reserve := range d.table.Budget().Reserves {
		most = max(most, reserve.Statuses)
	}
	return most
}

// unflushed are the pods that have ended and whose final status is not accepted, and
// whether some were never handed in. One that is left as it is has no final status,
// unless it was being deleted anyway. One that may still run, because its killer has
// failed or does not come to an end, has one only when the host's end is its own: else
// it would be Running for ever on a node that is off (k/k#110755).
func (d *drain) unflushed(kills []*kill) (ended []*kill, fresh bool) {
	for _, k := range kills {
		unflushed, handedIn := k.toFlush(d.ending)
		switch {
		case !unflushed:
		case k.pod.DeletionTimestamp == nil && d.policy.of(k.pod) == PolicyLeaveAsIs:
			k.acknowledge()
		default:
			ended, fresh = append(ended, k), fresh || !handedIn
		}
	}
	return ended, fresh
}

// finals are copies of pods as they are to be in the end.
func (d *drain) finals(kills []*kill) []*v1.Pod {
	pods, now := make([]*v1.Pod, len(kills)), metav1.Now()
	for i, k := range kills {
		pods[i] = k.final(d.policy.of(k.pod), now)
	}
	return pods
}

// final is a copy of the pod with its final status, and with a deletion timestamp
// if it is to be removed.
func (k *kill) final(policy PodPolicy, now metav1.Time) *v1.Pod {
	pod := *k.pod
	if status := k.handIn(); status != nil {
		pod.Status = *status
	}
	policy.setStatus()(&pod.Status)
	if policy == PolicyDelete && pod.DeletionTimestamp == nil {
		seconds := k.seconds
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &seconds
	}
	return &pod
}

// acknowledge marks the pods that a flush has brought through: all without an
// error, all but the named ones with an *[UnflushedError], none with another.
func acknowledge(kills []*kill, err error) {
	failed := map[types.NamespacedName]bool{}
	if err != nil {
		var unflushed *UnflushedError
		ok := errors.As(err, &unflushed)
		if !ok {
			return
		}
		for _, name := range unflushed.Pods {
			failed[name] = true
		}
	}
	for _, k := range kills {
		if !failed[types.NamespacedName{Namespace: k.pod.Namespace, Name: k.pod.Name}] {
			k.acknowledge()
		}
	}
}

func podsOf(kills []*kill) []*v1.Pod {
	pods := make([]*v1.Pod, len(kills))
	for i, k := range kills {
		pods[i] = k.pod
	}
	return pods
}
