package notice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	namePath   = "/metadata/instance/compute/name?api-version=2021-02-01&format=text"
	eventsPath = "/metadata/scheduledevents?api-version=2020-07-01"
	// firstTimeout is the timeout of the first request, which switches the service on. Azure says that this
	// takes up to two minutes.
	firstTimeout = 2*time.Minute + 10*time.Second
	// announceAhead is how long before its time an event is announced at the earliest. It is Azure's minimum
	// notice for a reboot. Hardware failures are known days ahead, and must not keep the node drained for days.
	announceAhead = 15 * time.Minute
)

// Azure returns Azure's Scheduled Events, read every second. Preempt (30 s ahead) and Terminate (5 to
// 15 minutes) power the machine off, Reboot (15 minutes) and Redeploy (10 minutes) reboot it. Freeze is
// no shutdown.
//
// Of several events of this machine the earliest counts. It is announced at most 15 minutes ahead. An event
// that had started when it was first read is not announced, because the machine may have just survived it.
// An event that somebody acknowledges early starts before its time. If it was announced already, the
// announcement keeps its deadline; otherwise it is announced without a deadline.
//
// The first request switches the service on, which takes up to two minutes. [Acknowledge] is supported.
func Azure() Provider {
	return Provider{
		values: func(s *service) []*polledValue {
			return []*polledValue{{origin: originAzure, interval: time.Second, read: (&azure{service: s, timeout: firstTimeout}).read}}
		},
		acknowledge: func(ctx context.Context, s *service) error {
			return (&azure{service: s, timeout: firstTimeout}).acknowledge(ctx)
		},
	}
}

// azure reads and acknowledges Azure's Scheduled Events.
type azure struct {
	service *service
	timeout time.Duration     // of the next request for the events
	name    string            // of this machine; "": not read yet
	known   map[string]notice // the notices of the last answer, by EventID
}

// scheduledEvent is the used part of an event in Azure's document.
type scheduledEvent struct {
	EventID     string `json:"EventId"`
	EventType   string
	EventStatus string // Scheduled or Started
	Resources   []string
	NotBefore   string // empty once the event has started
}

// read implements polledValue.read. It returns the notice of the earliest event that is not too far away to be announced
// (isTooFarAhead), or a notice without a key if there is none. Azure always answers at once, so read does not need the
// parameter atOnce.
func (z *azure) read(ctx context.Context, _ bool) (notice, error) {
	events, clockAhead, err := z.events(ctx)
	if err != nil {
		return notice{}, err
	}
	var earliest notice
	known := map[string]notice{}
	for _, e := range events {
		n, counts := z.current(e, clockAhead)
		if !counts {
			continue
		}
		known[e.EventID] = n
		isEarliest := earliest.key == "" || n.event.Deadline.Before(earliest.event.Deadline)
		if isEarliest && !n.isTooFarAhead() {
			earliest = n
		}
	}
	z.known = known
	return earliest, nil
}

// current returns the notice of an event as it counts now. Once the event has started, or its time has passed, the notice has no
// deadline. If that was so when the event was first read, it does not count: the machine may have survived it.
func (z *azure) current(e scheduledEvent, clockAhead time.Duration) (n notice, counts bool) {
	n = e.notice(clockAhead)
	lastKnown, wasKnown := z.known[e.EventID]
	isStarted := e.EventStatus != "Scheduled"
	if isStarted {
		n = lastKnown // a started event has no NotBefore any more, but its kind and key still count
	} else if !n.hasPassed() {
		return n, true
	}
	n.event.Deadline = time.Time{} // unknown; it counts as earlier than all known deadlines
	return n, wasKnown
}

// events asks for the events that shut this machine down. clockAhead is how far this machine's clock is ahead of
// the service's.
func (z *azure) events(ctx context.Context) (events []scheduledEvent, clockAhead time.Duration, err error) {
	if z.name == "" {
		a, err := z.send(ctx, request{path: namePath})
		if err != nil {
			return nil, 0, err
		}
		if z.name = strings.TrimSpace(string(a.body)); z.name == "" {
			return nil, 0, errors.New("this machine has no name")
		}
	}
	a, err := z.send(ctx, request{path: eventsPath, timeout: z.timeout})
	if err != nil {
		return nil, 0, err
	}
	events, err = parseScheduledEvents(a.body, z.name)
	if err == nil {
		z.timeout = answerTimeout // the service is on now, and answers quickly
	}
	return events, a.clockAhead, err
}

// send sends a request and requires the status 200.
func (z *azure) send(ctx context.Context, r request) (answer, error) {
	r.header = map[string]string{"Metadata": "true"}
	a, err := z.service.send(ctx, r)
	if err == nil && a.status != http.StatusOK {
		err = a.statusError()
	}
	return a, err
}

// acknowledge tells Azure to start the current events of this machine now. It does not acknowledge an event that is too
// far away to be announced. It does not acknowledge an event of several machines either: the others may not be ready.
func (z *azure) acknowledge(ctx context.Context) error {
	events, clockAhead, err := z.events(ctx)
	if err != nil {
		return err
	}
	type startRequest struct {
		EventID string `json:"EventId"`
	}
	var start struct{ StartRequests []startRequest } // Azure's document for an acknowledgement
	var errs []error
	for _, e := range events {
		switch {
		case e.EventStatus != "Scheduled": // the event has started already
		case e.notice(clockAhead).isTooFarAhead(): // the event was not announced, so nothing was drained for it
		case len(e.Resources) > 1:
			errs = append(errs, fmt.Errorf("event %s of %d machines was not acknowledged", e.EventID, len(e.Resources)))
		default:
			start.StartRequests = append(start.StartRequests, startRequest{EventID: e.EventID})
		}
	}
	if len(start.StartRequests) == 0 {
		return errors.Join(errs...)
	}
	body, err := json.Marshal(start)
	if err == nil {
		_, err = z.send(ctx, request{method: http.MethodPost, path: eventsPath, body: body})
	}
	return errors.Join(append(errs, err)...)
}

// parseScheduledEvents returns those events of Azure's document that shut down the machine with this name.
func parseScheduledEvents(body []byte, name string) ([]scheduledEvent, error) {
	var document struct {
		DocumentIncarnation *int64
		Events              []scheduledEvent
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, fmt.Errorf("read the scheduled events: %w", err)
	}
	if document.DocumentIncarnation == nil { // the answer is JSON, but not from Azure
		return nil, errors.New("the scheduled events have no DocumentIncarnation")
	}
	return slices.DeleteFunc(document.Events, func(e scheduledEvent) bool {
		isNamed := func(resource string) bool { return strings.EqualFold(resource, name) }
		return e.EventID == "" || e.kind() == source.KindUnknown || !slices.ContainsFunc(e.Resources, isNamed)
	}), nil
}

// kind returns the kind of shutdown. KindUnknown means that the event, such as Freeze, is no shutdown.
func (e scheduledEvent) kind() source.Kind {
	switch e.EventType {
	case "Preempt", "Terminate":
		return source.KindPoweroff
	case "Reboot", "Redeploy":
		return source.KindReboot
	default:
		return source.KindUnknown
	}
}

// notice returns the event's notice. Without a valid NotBefore the notice has no deadline. clockAhead is how far this
// machine's clock is ahead of the service's.
func (e scheduledEvent) notice(clockAhead time.Duration) notice {
	event := source.Event{Kind: e.kind()}
	if notBefore, err := http.ParseTime(e.NotBefore); err == nil {
		event.Deadline = notBefore.Add(clockAhead)
	}
	return notice{key: e.EventID + " " + e.NotBefore, event: event}
}

// isTooFarAhead reports whether the deadline is so far away that the notice must not be announced yet. A notice
// without a deadline never is.
func (n notice) isTooFarAhead() bool {
	return time.Until(n.event.Deadline) > announceAhead
}
