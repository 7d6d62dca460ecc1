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
	// firstTimeout bounds the first request for the events, which switches the service on. Azure
	// says that this takes up to two minutes.
	firstTimeout = 2*time.Minute + 10*time.Second
	// announceAhead is how long before its time an event is announced at the earliest. That is what
	// Azure gives at least for a reboot. Of hardware that is going to fail it speaks days before.
	announceAhead = 15 * time.Minute
)

// Azure is Azure's Scheduled Events, which are asked for every second. Preempt (30 s ahead) and
// Terminate (5 to 15 minutes) are a power off to the node, Reboot (15 minutes) and Redeploy (10
// minutes) a reboot. Freeze is no shutdown: the machine goes on where it was. Of several events the
// first counts. One that is days away is announced 15 minutes ahead. An event counts if it names
// this machine. One that has started before it was read announces nothing: the machine may just
// come back from it. One that somebody acknowledges starts before its time: if it has not been
// announced it is now, without a deadline; else what was announced stands. The first request of a
// machine switches the service on, which takes up to two minutes. Azure takes an acknowledgement
// ([Acknowledge]).
func Azure() Provider {
	return Provider{
		items: func(s *service) []*item {
			return []*item{{origin: OriginAzure, interval: time.Second, read: (&azure{service: s, within: firstTimeout}).read}}
		},
		acknowledge: func(ctx context.Context, s *service) error {
			return (&azure{service: s, within: firstTimeout}).acknowledge(ctx)
		},
	}
}

// azure reads the events of this machine.
type azure struct {
	service *service
	within  time.Duration     // bounds the next request for the events
	name    string            // of this machine; "": not asked for yet
	known   map[string]notice // of the last answer, by event
}

// scheduledEvent is what is used of an event in Azure's document.
type scheduledEvent struct {
	EventID     string `json:"EventId"`
	EventType   string
	EventStatus string // Scheduled or Started
	Resources   []string
	NotBefore   string // empty once it has started
}

// read is the read of an item. An event that was read before it began stands until it is gone. From its
// time on, or once it has started, it may begin at any moment and has no deadline. An event whose
// time has passed when it is first read hides no other one.
func (z *azure) read(ctx context.Context, _ bool) (notice, error) {
	events, ahead, err := z.events(ctx)
	if err != nil {
		return notice{}, err
	}
	var first notice
	known := map[string]notice{}
	for _, e := range events {
		n, found := z.known[e.EventID]
		begins := e.EventStatus != "Scheduled"
		if !begins {
			n = e.notice(ahead)
			begins = n.passed()
		}
		if begins {
			if !found {
				continue // the machine may have been through it
			}
			n.event.Deadline = time.Time{}
		}
		known[e.EventID] = n
		if !n.tooEarly() && (first.key == "" || n.event.Deadline.Before(first.event.Deadline)) {
			first = n
		}
	}
	z.known = known
	return first, nil
}

// events returns the events that shut this machine down, and clockAhead of the answer.
func (z *azure) events(ctx context.Context) ([]scheduledEvent, time.Duration, error) {
	if z.name == "" {
		a, err := z.ask(ctx, request{path: namePath})
		if err != nil {
			return nil, 0, err
		}
		if z.name = strings.TrimSpace(string(a.body)); z.name == "" {
			return nil, 0, errors.New("this machine has no name")
		}
	}
	a, err := z.ask(ctx, request{path: eventsPath, within: z.within})
	if err != nil {
		return nil, 0, err
	}
	events, err := parseScheduledEvents(a.body, z.name)
	if err == nil {
		z.within = answerTimeout
	}
	return events, a.clockAhead, err
}

// ask sends a request that Azure answers with OK.
func (z *azure) ask(ctx context.Context, r request) (answer, error) {
	r.header = map[string]string{"Metadata": "true"}
	a, err := z.service.ask(ctx, r)
	if err == nil && a.status != http.StatusOK {
		err = a.unexpected()
	}
	return a, err
}

// acknowledge acknowledges the events that are announced now.
func (z *azure) acknowledge(ctx context.Context) error {
	events, ahead, err := z.events(ctx)
	if err != nil {
		return err
	}
	type startRequest struct {
		EventID string `json:"EventId"`
	}
	var start struct{ StartRequests []startRequest }
	var errs []error
	for _, e := range events {
		switch {
		case e.EventStatus != "Scheduled" || e.notice(ahead).tooEarly():
		case len(e.Resources) > 1:
			errs = append(errs, fmt.Errorf("event %s is of %d machines, and is not acknowledged for the others", e.EventID, len(e.Resources)))
		default:
			start.StartRequests = append(start.StartRequests, startRequest{EventID: e.EventID})
		}
	}
	if len(start.StartRequests) > 0 {
		body, err := json.Marshal(start)
		if err == nil {
			_, err = z.ask(ctx, request{method: http.MethodPost, path: eventsPath, body: body})
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// parseScheduledEvents parses Azure's document. It returns the events that shut down the machine
// with this name.
func parseScheduledEvents(body []byte, name string) ([]scheduledEvent, error) {
	var document struct {
		DocumentIncarnation *int64
		Events              []scheduledEvent
	}
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, fmt.Errorf("read the scheduled events: %w", err)
	}
	if document.DocumentIncarnation == nil {
		return nil, errors.New("the scheduled events have no DocumentIncarnation")
	}
	return slices.DeleteFunc(document.Events, func(e scheduledEvent) bool {
		isNamed := func(resource string) bool { return strings.EqualFold(resource, name) }
		return e.EventID == "" || e.kind() == source.KindUnknown || !slices.ContainsFunc(e.Resources, isNamed)
	}), nil
}

// kind returns what the event does to the machine. KindUnknown: it does not shut it down.
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

// notice returns what is announced of a scheduled event. A NotBefore that cannot be read is no
// deadline.
func (e scheduledEvent) notice(ahead time.Duration) notice {
	event := source.Event{Kind: e.kind()}
	if notBefore, err := http.ParseTime(e.NotBefore); err == nil {
		event.Deadline = notBefore.Add(ahead)
	}
	return notice{key: e.EventID + " " + e.NotBefore, event: event}
}

// tooEarly reports whether the time of a notice is too far away to announce it.
func (n notice) tooEarly() bool {
	return time.Until(n.event.Deadline) > announceAhead
}
