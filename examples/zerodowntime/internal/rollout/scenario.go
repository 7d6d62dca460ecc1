package rollout

import (
	"errors"
	"fmt"
	"time"
)

// Settings are common to all scenarios. [Settings.Validate] checks them.
type Settings struct {
	// Backend is the command line of a backend (package backend).
	Backend []string
	// Replicas is the number of pods, 1 at least.
	Replicas int
	// Rate is the number of short requests a second, 1 at least. A tenth as many long-running
	// requests are sent.
	Rate int
	// Delay is the time from a change of the endpoints until the proxy learns of it.
	Delay time.Duration
	// SleepSeconds is the length of the preStop sleep, in scenarios that have one.
	SleepSeconds int64
	// GraceSeconds is the pods' terminationGracePeriodSeconds, 1 at least.
	GraceSeconds int64
	// ShortGraceSeconds is the grace period of deletes that ask for less than GraceSeconds, 1 at
	// least.
	ShortGraceSeconds int64
	// Task is how long a long-running request takes, an hour at most.
	Task time.Duration
	// Websockets is the number of open websockets, 1 at least.
	Websockets int
	// MinReady is how long a new pod must be ready before an old one is deleted, as a
	// Deployment's minReadySeconds.
	MinReady time.Duration
}

// Validate returns all that is wrong with the settings, joined.
func (s Settings) Validate() error {
	var errs []error
	least := func(name string, value, least int64) {
		if value < least {
			errs = append(errs, fmt.Errorf("%s must be %d at least, not %d", name, least, value))
		}
	}
	least("the number of backends", int64(s.Replicas), 1)
	least("the rate", int64(s.Rate), 1)
	least("the sleep", s.SleepSeconds, 0)
	least("the grace", s.GraceSeconds, 1)
	least("the short grace", s.ShortGraceSeconds, 1)
	least("the number of websockets", int64(s.Websockets), 1)
	hour := func(name string, value time.Duration) {
		if value < 0 || value > time.Hour {
			errs = append(errs, fmt.Errorf("%s must be from 0 to 1h, not %s", name, value))
		}
	}
	hour("the delay", s.Delay)
	hour("the task", s.Task)
	hour("the time to be ready", s.MinReady)
	if s.SleepSeconds > s.GraceSeconds {
		errs = append(errs, fmt.Errorf("the sleep (%d s) must not be longer than the grace (%d s): an API server refuses such a pod", s.SleepSeconds, s.GraceSeconds))
	}
	return errors.Join(errs...)
}

// Load is the kind of traffic that clients send.
type Load string

const (
	// Web means short requests.
	Web Load = "web"
	// Tasks means long-running requests.
	Tasks Load = "tasks"
	// Websockets means connections that stay open.
	Websockets Load = "websockets"
)

// The names of the scenarios.
const (
	NoSleep         = "no-sleep"
	Sleep           = "sleep"
	LongRequests    = "long-requests"
	ShortGrace      = "short-grace"
	WebsocketsCut   = "websockets-cut"
	WebsocketsDrain = "websockets-drain"
)

// Scenario is one way to set up and to use the service.
type Scenario struct {
	Name  string
	Title string
	Load  Load
	// SleepSeconds is the length of the preStop sleep; 0: the pods have no preStop hook.
	SleepSeconds int64
	// DeleteGraceSeconds is the grace period that the deletes ask for, as kubectl's
	// --grace-period; 0: the pods' terminationGracePeriodSeconds.
	DeleteGraceSeconds int64
	// CloseWebsockets says that the backends send a close frame to each websocket.
	CloseWebsockets bool
}

// Scenarios returns all scenarios, in the order of [Names].
func Scenarios(s Settings) []Scenario {
	sleep := fmt.Sprintf("sleep: %d", s.SleepSeconds)
	return []Scenario{
		{Name: NoSleep, Load: Web, Title: "Short requests, no preStop sleep"},
		{Name: Sleep, Load: Web, SleepSeconds: s.SleepSeconds, Title: "Short requests, preStop " + sleep},
		{Name: LongRequests, Load: Tasks, SleepSeconds: s.SleepSeconds, Title: fmt.Sprintf("Requests of %s, %s, grace %d s", s.Task, sleep, s.GraceSeconds)},
		{
			Name: ShortGrace, Load: Tasks, SleepSeconds: s.SleepSeconds, DeleteGraceSeconds: s.ShortGraceSeconds,
			Title: fmt.Sprintf("Requests of %s, %s, grace cut to %d s", s.Task, sleep, s.ShortGraceSeconds),
		},
		{Name: WebsocketsCut, Load: Websockets, SleepSeconds: s.SleepSeconds, Title: "Websockets, " + sleep + ", not closed by the server"},
		{Name: WebsocketsDrain, Load: Websockets, SleepSeconds: s.SleepSeconds, CloseWebsockets: true, Title: "Websockets, " + sleep + ", closed with notice"},
	}
}

// Names returns the names of all scenarios, in the order in which they are best read.
func Names() []string {
	return []string{NoSleep, Sleep, LongRequests, ShortGrace, WebsocketsCut, WebsocketsDrain}
}
