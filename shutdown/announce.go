package shutdown

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// eventReason and the messages are those of the kubelet's node shutdown.
	eventReason      = "Shutdown"
	messageDetected  = "Shutdown manager detected shutdown event"
	messageCancelled = "Shutdown manager detected shutdown cancellation"
)

// announcement is one thing to be said about the node.
type announcement struct {
	eventtype, message string     // of the event; "": none
	state              *NodeState // nil: nothing is published
	hurry              func()     // called by each who waits for it no longer
	hurried            chan struct{}
	settled            chan struct{}
	err                error // of the first attempt; read once settled is closed
}

func newAnnouncement(eventtype, message string, state *NodeState) *announcement {
	hurried := make(chan struct{})
	return &announcement{
		eventtype: eventtype,
		message:   message,
		state:     state,
		hurry:     sync.OnceFunc(func() { close(hurried) }),
		hurried:   hurried,
		settled:   make(chan struct{}),
	}
}

// announcer says what becomes of the node, in order: an event each, and the state
// that is true now. It is a goroutine of its own, so that neither the loop waits
// for a recorder nor a drain for an API server longer than it wants to.
type announcer struct {
	reporter Reporter      // nil: nothing is published
	events   EventRecorder // nil: nothing is recorded
	node     runtime.Object
	wake     chan struct{} // of size 1

	mu        sync.Mutex // guards all below
	queue     []*announcement
	supersede context.CancelCauseFunc // ends the publishing under way; nil: none
}

// say puts an announcement in the queue and never blocks. A state supersedes the
// one that is being published.
func (a *announcer) say(eventtype, message string, state *NodeState) *announcement {
	said := newAnnouncement(eventtype, message, state)
	a.mu.Lock()
	a.queue = append(a.queue, said)
	supersede := a.supersede
	a.mu.Unlock()
	if state != nil && supersede != nil {
		supersede(errSuperseded)
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
	return said
}

// run says what is in the queue until ctx ends.
func (a *announcer) run(ctx context.Context) {
	for {
		if said := a.next(); said != nil {
			a.announce(ctx, said)
			continue
		}
		select {
		case <-a.wake:
		case <-ctx.Done():
			return
		}
	}
}

// next takes the oldest announcement from the queue; nil: it is empty.
func (a *announcer) next() *announcement {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 {
		return nil
	}
	said := a.queue[0]
	a.queue = a.queue[1:]
	return said
}

// announce records the event and publishes the state.
func (a *announcer) announce(ctx context.Context, said *announcement) {
	if said.message != "" && a.events != nil {
		a.events.Event(a.node, said.eventtype, eventReason, said.message)
	}
	if said.state == nil || a.reporter == nil {
		close(said.settled)
		return
	}
	a.publish(ctx, said)
}

// detected announces a shutdown.
func (a *announcer) detected(state NodeState) *announcement {
	return a.say(v1.EventTypeNormal, messageDetected, &state)
}

// cancelled announces that a shutdown will not happen.
func (a *announcer) cancelled() {
	a.say(v1.EventTypeNormal, messageCancelled, &NodeState{})
}
