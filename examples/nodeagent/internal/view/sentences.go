package view

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// summarySentences says in sentences what happened in a shutdown, and why.
func summarySentences(s Snapshot) []string {
	end := fmt.Sprintf("The shutdown took %s; it was allowed %s.", durationText(s.Now.Sub(s.Began)), durationText(s.Allowed))
	if s.Abandoned {
		end = fmt.Sprintf("The agent left the shutdown after %s. Pods that had not stopped by then run on.", durationText(s.Now.Sub(s.Began)))
	}
	if s.Cancelled {
		end = fmt.Sprintf("The shutdown was called off after %s. Pods that were told to stop by then stay stopped.", durationText(s.Now.Sub(s.Began)))
	}
	inTime := 0
	problems := make([]string, 0, len(s.Pods))
	for _, p := range s.Pods {
		if p.State == Gone && p.Problem == "" && p.outcome() == lifecycle.Graceful {
			inTime++
		}
		problems = append(problems, podProblems(p)...)
	}
	return slices.Concat(
		[]string{end, fmt.Sprintf("%d of %s stopped in time.", inTime, plural(len(s.Pods), "pod"))},
		problems,
		apiServerWarnings(s),
	)
}

// apiServerWarnings says what the API server does not know.
func apiServerWarnings(s Snapshot) []string {
	var warnings []string
	if s.NodeStateError != "" {
		warnings = append(warnings, "Warning: the API server does not know that this node shut down: "+s.NodeStateError)
	}
	if n := len(s.Unacknowledged); n > 0 {
		warnings = append(warnings, fmt.Sprintf("Warning: the API server has not accepted the final status of %s: %s",
			plural(n, "pod"), strings.Join(s.Unacknowledged, ", ")))
	}
	return warnings
}

// podProblems says what went wrong in the stop of a pod and its containers.
func podProblems(p Pod) []string {
	var problems []string
	for _, c := range p.Containers {
		if problem := c.problem(p.Granted); problem != "" {
			problems = append(problems, fmt.Sprintf("%s: container %s %s", p.Name, c.Name, problem))
		}
	}
	if p.Problem != "" && p.State == Gone && !mayStillRun(p.outcome()) {
		problems = append(problems, p.Name+": "+p.Problem)
	}
	return problems
}

// problem says what went wrong in the stop of a container. It returns "" if nothing did.
func (c Container) problem(granted int64) string {
	switch c.Outcome {
	case lifecycle.Graceful, lifecycle.NotFound:
		return c.hookProblem()
	case lifecycle.GraceExceeded:
		return fmt.Sprintf("did not end on %s and was killed %s later, when the %d s of its pod were over.", c.Signal, durationText(c.Stopping), granted)
	case lifecycle.Forced:
		return fmt.Sprintf("was killed, because its stop failed: %v", c.Err)
	case lifecycle.RuntimeStuck:
		return fmt.Sprintf("may still run, the container runtime could not stop it: %v", c.Err)
	case lifecycle.LeftRunning:
		return "was left running, because the agent stopped."
	}
	return ""
}

// hookProblem says what went wrong with the preStop hook of a container. It returns "" if
// nothing did.
func (c Container) hookProblem() string {
	switch {
	case c.Hook.Outcome == lifecycle.HookFailed:
		return fmt.Sprintf("had a preStop hook (%s) that failed: %v", c.HookText, withoutURL(c.Hook.Err))
	case c.hookWasCutOff():
		return fmt.Sprintf("had a preStop hook (%s) that was cut off after %s.", c.HookText, durationText(c.Hook.Took))
	}
	return ""
}

// withoutURL returns the error of a request without its URL, whose query may be secret.
func withoutURL(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}

// writeSentences writes sentences, each on lines of its own.
func writeSentences(out *bytes.Buffer, sentences []string, width int) {
	for _, sentence := range sentences {
		fmt.Fprintln(out, wrap(sentence, width-1))
	}
}
