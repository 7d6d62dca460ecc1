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
	kind           kind
	pod            *v1.Pod
	tell           Func
	expires        time.Time // it is dropped then; zero: never
	done           func(error)
	due            time.Time // of the next attempt
	attempts       int       // so far, the one under way included
	ctx            context.Context
	cancel         context.CancelCauseFunc
	unwatch        func() bool // takes back what waits for the end of ctx
	ignoresContext bool        // ctx has ended a while ago and the call has not
}

func (i *item) name() string {
	return "Options.Reporter." + i.kind.String() + " for pod " + i.pod.Namespace + "/" + i.pod.Name
}

// dropped tells whether the item has expired, and ends it then.
func (i *item) dropIfExpired(now time.Time) bool {
	expired := !i.expires.IsZero() && !i.expires.After(now)
	if expired {
		i.done(errTooLate)
	}
	return expired
}

// backlog is what is to be told and is not being told now.
type backlog struct {
	untried [kinds][]*item // that have not been tried
	retries []*item        // that have failed, in the order of their failures
}

// add puts an item at the end of its kind.
func (b *backlog) add(i *item) { b.untried[i.kind] = append(b.untried[i.kind], i) }

// retry puts an item back that has failed.
func (b *backlog) retry(i *item) { b.retries = append(b.retries, i) }

// next takes the item that is to be told next, but none of a kind that is blocked. What has
// not failed yet comes first, so that a pod that is refused for ever takes nobody's turn.
// Nil: there is none now; soonest is when there may be one, zero if that is not known.
func (b *backlog) next(now time.Time, blocked func(kind) bool) (i *item, soonest time.Time) {
	for k := range b.untried {
		for len(b.untried[k]) > 0 && !blocked(kind(k)) {
			i := b.untried[k][0]
			b.untried[k] = b.untried[k][1:]
			if !i.dropIfExpired(now) {
				return i, time.Time{}
			}
		}
	}
	for n := 0; n < len(b.retries); n++ {
		i := b.retries[n]
		switch {
		case blocked(i.kind):
		case i.due.After(now):
			if soonest.IsZero() || i.due.Before(soonest) {
				soonest = i.due
			}
		default:
			b.retries = slices.Delete(b.retries, n, n+1)
			if !i.dropIfExpired(now) {
				return i, time.Time{}
			}
			n--
		}
	}
	return nil, soonest
}

// of are all items of a kind.
func (b *backlog) of(k kind) []*item {
	items := slices.Clone(b.untried[k])
	for _, i := range b.retries {
		if i.kind == k {
			items = append(items, i)
		}
	}
	return items
}

// drop ends all items of a kind.
func (b *backlog) drop(k kind) {
	dropped := b.of(k)
	b.untried[k] = nil
	b.retries = slices.DeleteFunc(b.retries, func(i *item) bool { return i.kind == k })
	for _, i := range dropped {
		i.done(errTooLate)
	}
}
