//go:build go1.25

package notice_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/notice"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// azureInterval is the time between two reads of Azure's events.
const azureInterval = time.Second

// azureEvent is an event of Azure's Scheduled Events.
type azureEvent struct {
	EventID           string `json:"EventId"`
	EventType         string
	ResourceType      string
	Resources         []string
	EventStatus       string
	NotBefore         string
	Description       string
	EventSource       string
	DurationInSeconds int
}

// event returns a scheduled event of the machine "node-1".
func event(id, eventType string, notBefore time.Time) azureEvent {
	return azureEvent{
		EventID: id, EventType: eventType, ResourceType: "VirtualMachine", Resources: []string{"node-1"}, EventStatus: "Scheduled",
		NotBefore: notBefore.UTC().Format(http.TimeFormat), EventSource: "Platform", DurationInSeconds: -1,
	}
}

// azure is Azure's metadata service on the machine "node-1".
type azure struct {
	mu          sync.Mutex
	incarnation int
	events      []azureEvent
	started     []string      // the IDs of the events that were acknowledged
	nextTakes   time.Duration // how long the next request for the events takes, as if it had to switch the service on
}

// ServeHTTP answers like Azure: with the machine's name, with the document of events, and to acknowledgements.
func (z *azure) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Metadata") != "true" || r.URL.Query().Get("api-version") == "" {
		http.Error(w, `{"error": "Bad request. Required metadata header not specified"}`, http.StatusBadRequest)
		return
	}
	z.mu.Lock()
	takes := z.nextTakes
	z.mu.Unlock()
	switch r.Method + " " + r.URL.Path {
	case "GET /metadata/instance/compute/name":
		fmt.Fprint(w, "Node-1")
	case "GET /metadata/scheduledevents":
		if times.Sleep(r.Context(), takes) != nil {
			return
		}
		z.mu.Lock()
		defer z.mu.Unlock()
		z.nextTakes = 0
		if err := json.NewEncoder(w).Encode(map[string]any{"DocumentIncarnation": z.incarnation, "Events": z.events}); err != nil {
			panic(err)
		}
	case "POST /metadata/scheduledevents":
		z.startAcknowledged(w, r)
	default:
		http.NotFound(w, r)
	}
}

// startAcknowledged answers an acknowledgement: it starts the acknowledged events before their time, as Azure does.
func (z *azure) startAcknowledged(w http.ResponseWriter, r *http.Request) {
	z.mu.Lock()
	defer z.mu.Unlock()
	var body struct{ StartRequests []map[string]string }
	data, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(data, &body)
	}
	if err != nil || len(body.StartRequests) == 0 {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	for _, request := range body.StartRequests {
		z.started = append(z.started, request["EventId"])
		for i := range z.events {
			if z.events[i].EventID == request["EventId"] {
				z.events[i].EventStatus, z.events[i].NotBefore = "Started", ""
			}
		}
	}
	z.incarnation++
}

// setEvents replaces the events of Azure's document.
func (z *azure) setEvents(events ...azureEvent) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.events = events
	z.incarnation++
}

// delayNext makes the next request for the events take some time.
func (z *azure) delayNext(takes time.Duration) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.nextTakes = takes
}

// acknowledged returns the IDs of the events that were acknowledged.
func (z *azure) acknowledged() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.started
}

// An event of each type is announced with the kind of its shutdown, and withdrawn when Azure's document has no event any
// more. The start of the event in between changes nothing, although Azure then gives no time for it.
func TestEachAzureEventIsAnnounced(t *testing.T) {
	for eventType, kind := range map[string]source.Kind{
		"Preempt": source.KindPoweroff, "Terminate": source.KindPoweroff, "Reboot": source.KindReboot, "Redeploy": source.KindReboot,
	} {
		inBubble(t, notice.Azure(), &azure{}, func(t *testing.T, w *world, service *azure) {
			w.watch()
			advance(time.Minute)
			require.LessOrEqual(t, w.newRequests(), 1+1+60, "the machine's name, the events at the start, and the events every second")

			when := at(30 * time.Second)
			scheduled := event("A", eventType, when)
			service.setEvents(scheduled)
			advance(azureInterval)
			require.Equal(t, []source.Event{{Kind: kind, Deadline: when, Origin: notice.OriginAzure}}, w.newAnnouncements())

			scheduled.EventStatus, scheduled.NotBefore = "Started", ""
			service.setEvents(scheduled)
			advance(time.Minute)
			require.Empty(t, w.newAnnouncements(), "the event has started, and keeps the time that it had")

			service.setEvents()
			advance(azureInterval)
			require.Equal(t, cancelled(notice.OriginAzure), w.newAnnouncements())
			require.Empty(t, w.newErrors())
			require.NoError(t, w.end())
		})
	}
}

// Events that do not shut this machine down are not announced: those of other machines or of none, without an ID,
// of a type that is no shutdown or unknown, and one that had started before the first read.
func TestOtherAzureEventsAreIgnored(t *testing.T) {
	inBubble(t, notice.Azure(), &azure{}, func(t *testing.T, w *world, service *azure) {
		when := at(time.Minute)
		otherMachines, noMachine, started := event("A", "Reboot", when), event("B", "Preempt", when), event("C", "Reboot", when)
		otherMachines.Resources, noMachine.Resources = []string{"node-2", "node-11"}, nil
		started.EventStatus, started.NotBefore = "Started", ""
		withoutID, noShutdown, unknownType := event("", "Reboot", when), event("D", "Freeze", when), event("E", "New", when)
		service.setEvents(otherMachines, noMachine, withoutID, noShutdown, unknownType, started)
		w.watch()
		advance(2 * time.Minute)
		service.setEvents()
		advance(time.Minute)
		require.Empty(t, w.newAnnouncements())
		require.Empty(t, w.newErrors())
	})
}

// If there are several events, the one with the earliest time is announced. When that event is gone, the next one is
// announced. The notice is withdrawn when all events are gone.
func TestTheFirstAzureEventCounts(t *testing.T) {
	inBubble(t, notice.Azure(), &azure{}, func(t *testing.T, w *world, service *azure) {
		later, sooner := at(10*time.Minute), at(5*time.Minute)
		service.setEvents(event("A", "Reboot", later))
		w.watch()
		require.Equal(t, []source.Event{{Kind: source.KindReboot, Deadline: later, Origin: notice.OriginAzure}}, w.newAnnouncements())

		service.setEvents(event("A", "Reboot", later), event("B", "Terminate", sooner))
		advance(azureInterval)
		require.Equal(t, []source.Event{{Kind: source.KindPoweroff, Deadline: sooner, Origin: notice.OriginAzure}}, w.newAnnouncements())
		service.setEvents(event("A", "Reboot", later))
		advance(azureInterval)
		require.Equal(t, []source.Event{{Kind: source.KindReboot, Deadline: later, Origin: notice.OriginAzure}}, w.newAnnouncements())

		service.setEvents()
		advance(azureInterval)
		require.Equal(t, cancelled(notice.OriginAzure), w.newAnnouncements())
	})
}

// An event an hour away is announced 15 minutes before its time.
func TestAzureEventsAreAnnounced15MinutesAhead(t *testing.T) {
	inBubble(t, notice.Azure(), &azure{}, func(t *testing.T, w *world, service *azure) {
		when := at(time.Hour)
		service.setEvents(event("A", "Redeploy", when))
		w.watch()
		advance((60-15)*time.Minute - 2*time.Second)
		require.Empty(t, w.newAnnouncements())
		advance(3 * time.Second)
		require.Equal(t, []source.Event{{Kind: source.KindReboot, Deadline: when, Origin: notice.OriginAzure}}, w.newAnnouncements())
	})
}

// An event with an invalid time is announced at once, without a deadline.
func TestAnAzureEventWithAnInvalidTimeIsAnnounced(t *testing.T) {
	inBubble(t, notice.Azure(), &azure{}, func(t *testing.T, w *world, service *azure) {
		odd := event("A", "Preempt", at(time.Hour))
		odd.NotBefore = "soon"
		service.setEvents(odd)
		w.watch()
		require.Equal(t, []source.Event{{Kind: source.KindPoweroff, Origin: notice.OriginAzure}}, w.newAnnouncements())
	})
}

// An event whose time had passed when it was first read is not announced, because the machine may have survived it. It does
// not hide a second event, which is announced and, when it is gone from Azure's document, withdrawn.
func TestPassedAzureEventsAreIgnored(t *testing.T) {
	inBubble(t, notice.Azure(), &azure{}, func(t *testing.T, w *world, service *azure) {
		passed, when := event("A", "Reboot", at(-time.Minute)), at(5*time.Minute)
		service.setEvents(passed)
		w.watch()
		require.Empty(t, w.newAnnouncements())

		service.setEvents(passed, event("B", "Redeploy", when))
		advance(azureInterval)
		require.Equal(t, []source.Event{{Kind: source.KindReboot, Deadline: when, Origin: notice.OriginAzure}}, w.newAnnouncements())
		advance(10 * time.Minute)
		require.Empty(t, w.newAnnouncements(), "its time has passed, but it is still in the document")

		service.setEvents(passed)
		advance(azureInterval)
		require.Equal(t, cancelled(notice.OriginAzure), w.newAnnouncements())
		require.Empty(t, w.newErrors())
	})
}

// An event is a day away, which is too far to announce it. It is announced, without a deadline, when it starts early because
// somebody has acknowledged it, or after an outage of 25 hours, in which its time has passed.
func TestAnAzureEventThatStartsEarlyIsAnnounced(t *testing.T) {
	for name, begin := range map[string]func(w *world, service *azure, e azureEvent){
		"acknowledged": func(_ *world, service *azure, e azureEvent) {
			e.EventStatus, e.NotBefore = "Started", ""
			service.setEvents(e)
			advance(azureInterval)
		},
		"its time has come": func(w *world, _ *azure, _ azureEvent) {
			w.failService(func(rw http.ResponseWriter, _ *http.Request) { http.Error(rw, "", http.StatusGone) })
			advance(25 * time.Hour) // an hour past the event's time
			w.failService(nil)      // it works again
			advance(longestPause)
			w.newErrors() // those of the outage
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, notice.Azure(), &azure{}, func(t *testing.T, w *world, service *azure) {
				far := event("A", "Redeploy", at(24*time.Hour))
				service.setEvents(far)
				w.watch()
				advance(time.Minute)
				require.Empty(t, w.newAnnouncements())
				begin(w, service, far)
				require.Equal(t, []source.Event{{Kind: source.KindReboot, Origin: notice.OriginAzure}}, w.newAnnouncements())
				advance(time.Minute)
				require.Empty(t, w.newAnnouncements(), "it is announced once")
				service.setEvents()
				advance(azureInterval)
				require.Equal(t, cancelled(notice.OriginAzure), w.newAnnouncements())
				require.Empty(t, w.newErrors())
			})
		})
	}
}

// The first request for the events switches the service on, and may take two minutes. A later request that takes so long fails
// after 5 s.
func TestTheFirstAzureRequestMayTakeTwoMinutes(t *testing.T) {
	inBubble(t, notice.Azure(), &azure{}, func(t *testing.T, w *world, service *azure) {
		service.delayNext(2 * time.Minute)
		service.setEvents(event("A", "Terminate", at(10*time.Minute)))
		w.watch()
		advance(2*time.Minute - time.Second)
		require.Empty(t, w.newAnnouncements())
		advance(2 * time.Second)
		require.Len(t, w.newAnnouncements(), 1)
		require.Empty(t, w.newErrors())

		service.delayNext(2 * time.Minute)
		advance(azureInterval + 6*time.Second) // the next read, its 5 s, and 1 s more
		require.Len(t, w.newErrors(), 1)
	})
}

// The metadata service returns an empty name of the machine, so that no event can be known as the machine's own. Watch
// reports a failure.
func TestAnAzureMachineWithoutANameIsAFailure(t *testing.T) {
	inBubble(t, notice.Azure(), &azure{}, func(t *testing.T, w *world, service *azure) {
		service.setEvents(event("A", "Preempt", at(time.Minute)))
		w.failService(func(http.ResponseWriter, *http.Request) {})
		w.watch()
		require.Equal(t, []string{notice.OriginAzure + ": this machine has no name"}, w.newErrors())
		require.Empty(t, w.newAnnouncements())
	})
}

// Acknowledge tells Azure to start the announced shutdown of this machine now. It acknowledges neither an event that is a
// day away, which was not announced, nor a freeze, which is no shutdown. Once the event has started, Acknowledge does nothing.
func TestAcknowledgeStartsTheAnnouncedEvent(t *testing.T) {
	inBubble(t, notice.Azure(), &azure{}, func(t *testing.T, w *world, service *azure) {
		service.setEvents(event("A", "Terminate", at(5*time.Minute)), event("B", "Redeploy", at(24*time.Hour)), event("C", "Freeze", at(time.Minute)))
		w.watch()
		require.Len(t, w.newAnnouncements(), 1)
		for range 2 {
			require.NoError(t, notice.Acknowledge(t.Context(), w.provider))
			require.Equal(t, []string{"A"}, service.acknowledged(), "once")
		}
		advance(azureInterval)
		require.Empty(t, w.newAnnouncements(), "its start is not announced again")
	})
}

// Without an event Acknowledge does nothing.
func TestAcknowledgeWithoutAnEventDoesNothing(t *testing.T) {
	inBubble(t, notice.Azure(), &azure{}, func(t *testing.T, w *world, service *azure) {
		require.NoError(t, notice.Acknowledge(t.Context(), w.provider))
		require.Empty(t, service.acknowledged())
	})
}

// An event of two machines is not acknowledged, because the other machine may not be ready. That is an error, but the
// event of this machine alone is acknowledged.
func TestAcknowledgeLeavesOutAnEventOfTwoMachines(t *testing.T) {
	inBubble(t, notice.Azure(), &azure{}, func(t *testing.T, w *world, service *azure) {
		shared := event("A", "Reboot", at(time.Minute))
		shared.Resources = []string{"node-1", "node-2"}
		service.setEvents(event("B", "Preempt", at(time.Minute)), shared)
		require.ErrorContains(t, notice.Acknowledge(t.Context(), w.provider), "event A of 2 machines")
		require.Equal(t, []string{"B"}, service.acknowledged())
	})
}

// Azure refuses the acknowledgement, which is a POST. Acknowledge returns an error.
func TestARefusedAcknowledgementIsAnError(t *testing.T) {
	inBubble(t, notice.Azure(), &azure{}, func(t *testing.T, w *world, service *azure) {
		w.failService(func(rw http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				http.Error(rw, "", http.StatusServiceUnavailable)
				return
			}
			service.ServeHTTP(rw, r)
		})
		service.setEvents(event("A", "Preempt", at(time.Minute)))
		require.ErrorContains(t, notice.Acknowledge(t.Context(), w.provider), "503")
	})
}

// EC2 and GCE accept no acknowledgement. A zero Provider and an invalid Endpoint are errors as well.
func TestAcknowledgeIsUnsupported(t *testing.T) {
	for _, p := range []notice.Provider{notice.EC2(), notice.GCE()} {
		require.ErrorIs(t, notice.Acknowledge(t.Context(), p), errors.ErrUnsupported)
	}
	require.EqualError(t, notice.Acknowledge(t.Context(), notice.Provider{}), "notice: the Provider was not made with EC2, GCE or Azure")
	bad := notice.Azure()
	bad.Endpoint = "169.254.169.254"
	require.ErrorContains(t, notice.Acknowledge(t.Context(), bad), "Endpoint")
}
