package statuses

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// kind is the kind of an item, in the order of precedence.
type kind int

const (
	status  kind = iota // the final status
	mark                // not ready
	restore             // ready again
	kinds
)

func (k kind) String() string {
	return [...]string{"FlushPod", "MarkNotReady", "RestoreReadiness"}[k]
}

// item is one message about one pod for the API server.
type item struct {
	kind           kind
	pod            *v1.Pod
	tell           Func
	expires        time.Time // it is dropped then; zero: never
	done           func(error)
	due            time.Time // of the next attempt
	attempts       int       // including the one under way
	ctx            context.Context
	cancel         context.CancelCauseFunc
	unwatch        func() bool // cancels the AfterFunc on the end of ctx
	ignoresContext bool        // the call still runs although ctx has ended a while ago
}

func (i *item) name() string {
	return "Options.Reporter." + i.kind.String() + " for pod " + i.pod.Namespace + "/" + i.pod.Name
}

// dropIfExpired ends the item if it has expired, and reports whether it has.
func (i *item) dropIfExpired(now time.Time) bool {
	expired := !i.expires.IsZero() && !i.expires.After(now)
	if expired {
		i.done(errTooLate)
	}
	return expired
}

// backlog holds the items that are not being sent now.
type backlog struct {
	untried [kinds][]*item // were never sent
	retries []*item        // have failed, in the order of their failures
}

// add appends an item that was never sent.
func (b *backlog) add(i *item) { b.untried[i.kind] = append(b.untried[i.kind], i) }

// retry appends an item that has failed.
func (b *backlog) retry(i *item) { b.retries = append(b.retries, i) }

// next removes and returns the item to send next, of a kind that is not blocked. Items that were
// never sent come first, so that a pod that is refused for ever delays no other. If no item is
// due it returns nil and the time of the soonest one, zero if that is unknown.
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

// of returns all items of a kind.
func (b *backlog) of(k kind) []*item {
	items := slices.Clone(b.untried[k])
	for _, i := range b.retries {
		if i.kind == k {
			items = append(items, i)
		}
	}
	return items
}

// remove removes an item and does not end it.
func (b *backlog) remove(i *item) {
	is := func(other *item) bool { return other == i }
	b.untried[i.kind] = slices.DeleteFunc(b.untried[i.kind], is)
	b.retries = slices.DeleteFunc(b.retries, is)
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
