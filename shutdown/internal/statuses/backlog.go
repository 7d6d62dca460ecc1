package statuses

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// kind orders the items of a queue.
type kind int

const (
	status  kind = iota // a final status
	mark                // that a pod is not ready
	restore             // that a pod is ready again
	kinds
)

func (k kind) String() string {
	return [...]string{"FlushPod", "MarkNotReady", "RestoreReadiness"}[k]
}

// item is one thing that is to be told of one pod.
type item struct {
	kind     kind
	pod      *v1.Pod
	tell     Func
	expires  time.Time // it is dropped then; zero: never
	end      func(error)
	due      time.Time // of the next attempt
	attempts int       // so far, the one under way included
	ctx      context.Context
	cancel   context.CancelCauseFunc
	heard    func() bool // takes back what waits for the end of ctx
	deaf     bool        // ctx has ended a while ago and the call has not
}

func (i *item) name() string {
	return "Options.Reporter." + i.kind.String() + " for pod " + i.pod.Namespace + "/" + i.pod.Name
}

// dropped tells whether the item has expired, and ends it then.
func (i *item) dropped(now time.Time) bool {
	expired := !i.expires.IsZero() && !i.expires.After(now)
	if expired {
		i.end(errTooLate)
	}
	return expired
}

// backlog is what is to be told and is not being told now.
type backlog struct {
	fresh [kinds][]*item // that have not been tried
	again []*item        // that have failed, in the order of their failures
}

// add puts an item at the end of its kind.
func (b *backlog) add(i *item) { b.fresh[i.kind] = append(b.fresh[i.kind], i) }

// retry puts an item back that has failed.
func (b *backlog) retry(i *item) { b.again = append(b.again, i) }

// next takes the item that is to be told next, but none of a kind that is blocked. What has
// not failed yet comes first, so that a pod that is refused for ever takes nobody's turn.
// Nil: there is none now; soonest is when there may be one, zero if that is not known.
func (b *backlog) next(now time.Time, blocked func(kind) bool) (i *item, soonest time.Time) {
	for k := range b.fresh {
		for len(b.fresh[k]) > 0 && !blocked(kind(k)) {
			i := b.fresh[k][0]
			b.fresh[k] = b.fresh[k][1:]
			if !i.dropped(now) {
				return i, time.Time{}
			}
		}
	}
	for n := 0; n < len(b.again); n++ {
		i := b.again[n]
		switch {
		case blocked(i.kind):
		case i.due.After(now):
			if soonest.IsZero() || i.due.Before(soonest) {
				soonest = i.due
			}
		default:
			b.again = slices.Delete(b.again, n, n+1)
			if !i.dropped(now) {
				return i, time.Time{}
			}
			n--
		}
	}
	return nil, soonest
}

// of are all items of a kind.
func (b *backlog) of(k kind) []*item {
	items := slices.Clone(b.fresh[k])
	for _, i := range b.again {
		if i.kind == k {
			items = append(items, i)
		}
	}
	return items
}

// remove takes an item out, and does not end it.
func (b *backlog) remove(i *item) {
	is := func(other *item) bool { return other == i }
	b.fresh[i.kind] = slices.DeleteFunc(b.fresh[i.kind], is)
	b.again = slices.DeleteFunc(b.again, is)
}

// drop ends all items of a kind.
func (b *backlog) drop(k kind) {
	dropped := b.of(k)
	b.fresh[k] = nil
	b.again = slices.DeleteFunc(b.again, func(i *item) bool { return i.kind == k })
	for _, i := range dropped {
		i.end(errTooLate)
	}
}
