// Package rollout replaces all pods of a small service, one after the other, as a
// Deployment does, while it is used, and measures what its users notice.
//
// The pods are processes, stopped by a [lifecycle.Terminator]; their endpoints have the
// conditions that [apistatus.EndpointConditions] gives them, and reach the proxy late.
//
// # Concurrency properties
//
// [Run] may be called concurrently: runs share nothing.
//
// # Failure modes
//
// When its context ends, Run kills its processes, closes its port and returns.
package rollout

import (
	"errors"
	"fmt"
	"time"
)

// Settings are what all scenarios have in common.
type Settings struct {
	// Backend is the command that runs a backend.
	Backend []string
	// Replicas is how many pods there are, 1 at least.
	Replicas int
	// Rate is how many short requests are sent in a second; of tasks, a tenth.
	Rate int
	// Delay is how late the proxy learns of a change of the endpoints.
	Delay time.Duration
	// SleepSeconds is that of the preStop hook, where there is one.
	SleepSeconds int64
	// GraceSeconds is the pods' terminationGracePeriodSeconds, 1 at least.
	GraceSeconds int64
	// ShortGraceSeconds is the grace of a delete that leaves less than the pod's own, 1 at least.
	ShortGraceSeconds int64
	// Task is how long a long-running request takes.
	Task time.Duration
	// Websockets is how many of them are open.
	Websockets int
	// MinReady is how long a new pod must be ready before an old one is deleted, as a
	// Deployment's minReadySeconds.
	MinReady time.Duration
}

// Validate says all that is wrong with the settings.
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

// Load is what the users of a service do.
type Load string

const (
	// Web is short requests.
	Web Load = "web"
	// Tasks is long-running requests.
	Tasks Load = "tasks"
	// Websockets is connections that stay open.
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

// Scenario is one way to set up a service.
type Scenario struct {
	Name  string
	Title string
	Load  Load
	// SleepSeconds is that of the preStop hook; 0: the pods have none.
	SleepSeconds int64
	// DeleteGraceSeconds is asked for by the delete, as by kubectl's --grace-period; 0:
	// the pods have their own.
	DeleteGraceSeconds int64
	// CloseWebsockets says that the backends close their websockets with notice.
	CloseWebsockets bool
}

// Scenarios are all scenarios, in the order in which they are to be read.
func Scenarios(s Settings) []Scenario {
	slept := fmt.Sprintf("sleep: %d", s.SleepSeconds)
	return []Scenario{
		{Name: NoSleep, Load: Web, Title: "Short requests, no preStop sleep"},
		{Name: Sleep, Load: Web, SleepSeconds: s.SleepSeconds, Title: "Short requests, preStop " + slept},
		{Name: LongRequests, Load: Tasks, SleepSeconds: s.SleepSeconds, Title: fmt.Sprintf("Requests of %s, %s, grace %d s", s.Task, slept, s.GraceSeconds)},
		{
			Name: ShortGrace, Load: Tasks, SleepSeconds: s.SleepSeconds, DeleteGraceSeconds: s.ShortGraceSeconds,
			Title: fmt.Sprintf("Requests of %s, %s, grace cut to %d s", s.Task, slept, s.ShortGraceSeconds),
		},
		{Name: WebsocketsCut, Load: Websockets, SleepSeconds: s.SleepSeconds, Title: "Websockets, " + slept + ", not closed by the server"},
		{Name: WebsocketsDrain, Load: Websockets, SleepSeconds: s.SleepSeconds, CloseWebsockets: true, Title: "Websockets, " + slept + ", closed with notice"},
	}
}

// Names are those of all scenarios.
func Names() []string {
	return []string{NoSleep, Sleep, LongRequests, ShortGrace, WebsocketsCut, WebsocketsDrain}
}
