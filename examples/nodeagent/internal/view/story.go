package view

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// story says in sentences what happened and why.
func story(s Snapshot) []string {
	first := fmt.Sprintf("The shutdown took %s; it was allowed %s.", span(s.Now.Sub(s.Began)), span(s.Allowed))
	if s.Abandoned {
		first = fmt.Sprintf("The agent left the shutdown after %s. Pods that had not stopped by then run on.", span(s.Now.Sub(s.Began)))
	}
	if s.Cancelled {
		first = fmt.Sprintf("The shutdown was called off after %s. Pods that were told to stop by then stay stopped.", span(s.Now.Sub(s.Began)))
	}
	inTime := 0
	said := make([]string, 2, len(s.Pods)+2)
	for _, p := range s.Pods {
		if p.State == Gone && p.Problem == "" && p.outcome() == lifecycle.Graceful {
			inTime++
		}
		said = append(said, troubles(p)...)
	}
	said[0], said[1] = first, fmt.Sprintf("%d of %s stopped in time.", inTime, many(len(s.Pods), "pod"))
	return append(said, silences(s)...)
}

// silences says what the API server does not know.
func silences(s Snapshot) []string {
	var said []string
	if s.Unheard != "" {
		said = append(said, "Warning: the API server does not know that this node shut down: "+s.Unheard)
	}
	if n := len(s.Unacknowledged); n > 0 {
		said = append(said, fmt.Sprintf("Warning: the API server has not accepted the final status of %s: %s",
			many(n, "pod"), strings.Join(s.Unacknowledged, ", ")))
	}
	return said
}

// troubles says of a pod what did not go as its author may have wished.
func troubles(p Pod) []string {
	var said []string
	for _, c := range p.Containers {
		if why := c.trouble(p.Granted); why != "" {
			said = append(said, fmt.Sprintf("%s: container %s %s", p.Name, c.Name, why))
		}
	}
	if p.Problem != "" && p.State == Gone && !notStopped(p.outcome()) {
		said = append(said, p.Name+": "+p.Problem)
	}
	return said
}

// trouble says what went wrong with a container, "" if nothing did.
func (c Container) trouble(granted int64) string {
	switch c.Outcome {
	case lifecycle.Graceful, lifecycle.NotFound:
		return c.hookTrouble()
	case lifecycle.GraceExceeded:
		return fmt.Sprintf("did not end on %s and was killed %s later, when the %d s of its pod were over.", c.Signal, span(c.Stopping), granted)
	case lifecycle.Forced:
		return fmt.Sprintf("was killed, because its stop failed: %v", c.Err)
	case lifecycle.RuntimeStuck:
		return fmt.Sprintf("may still run, the container runtime could not stop it: %v", c.Err)
	case lifecycle.LeftRunning:
		return "was left running, because the agent stopped."
	}
	return ""
}

// hookTrouble says what went wrong with the hook of a container, "" if nothing did.
func (c Container) hookTrouble() string {
	switch {
	case c.Hook.Outcome == lifecycle.HookFailed:
		return fmt.Sprintf("had a preStop hook (%s) that failed: %v", c.HookText, withoutURL(c.Hook.Err))
	case c.hookWasCut():
		return fmt.Sprintf("had a preStop hook (%s) that was cut off after %s.", c.HookText, span(c.Hook.Took))
	}
	return ""
}

// withoutURL is the error of a request without its URL, whose query may be secret.
func withoutURL(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}
