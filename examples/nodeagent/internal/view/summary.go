package view

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// legend says how pods are stopped, for one who has never seen it.
const legend = "Pods stop in buckets, the lowest priority first: \"1000+\" is from 1000 up to the next bucket. " +
	"A pod first runs its preStop hook, if it has one, then gets a stop signal (SIGTERM); what still runs at the end of its time is killed."

// columns explains the table of the end.
const columns = "Granted is the time that a pod had to stop, took the time that it needed."

// legendWidth is how wide the legend is at the end, where there is room.
const legendWidth = 100

// headline says what begins.
func headline(s Snapshot) string {
	return fmt.Sprintf("Shutting down %s in %s, the lowest priority first; it may take up to %s.",
		many(len(s.Pods), "pod"), many(s.buckets(), "bucket"), span(s.Allowed))
}

// progress says how far it is.
func progress(s Snapshot) string {
	if s.Began.IsZero() {
		return fmt.Sprintf("%d of %s running.", s.count(Running), many(len(s.Pods), "pod"))
	}
	return fmt.Sprintf("Shutting down: %d of %s gone, after %s of at most %s.",
		s.count(Gone, Finished, NotStarted), many(len(s.Pods), "pod"), span(s.Now.Sub(s.Began)), span(s.Allowed))
}

// writeSummary writes the table and the sentences of the end, in lines of a width;
// 0 means any.
func writeSummary(out *bytes.Buffer, s Snapshot, width int) {
	rows := make([]table.Row, 0, len(s.Pods)+1)
	rows = append(rows, table.Row{"pod", "priority", "bucket", "granted", "took", "outcome"})
	for _, p := range s.Pods {
		rows = append(rows, table.Row{p.Name, strconv.Itoa(int(p.Priority)), bucketName(p.Bucket), granted(p), took(p), outcome(p, s.Cancelled)})
	}
	fmt.Fprintf(out, "\n%s\n\n", render(rows, width, text.WrapSoft, 2, 3, 4, 5))
	for _, sentence := range story(s) {
		fmt.Fprintln(out, wrapped(sentence, width-1))
	}
	told := legendWidth
	if width > 0 {
		told = min(told, width-1)
	}
	fmt.Fprintf(out, "\n%s\n", wrapped(legend+" "+columns, told))
}

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
		return fmt.Sprintf("had a preStop hook (%s) that failed: %v", c.HookText, c.Hook.Err)
	case c.hookWasCut():
		return fmt.Sprintf("had a preStop hook (%s) that was cut off after %s.", c.HookText, span(c.Hook.Took))
	}
	return ""
}

// killed tells whether an outcome is an end by force, or none.
func killed(o lifecycle.Outcome) bool {
	return o != lifecycle.Graceful && o != lifecycle.NotFound
}

func granted(p Pod) string {
	if p.State != Gone && p.State != Ending {
		return "-"
	}
	return fmt.Sprintf("%d s", p.Granted)
}

func took(p Pod) string {
	if p.State != Gone {
		return "-"
	}
	return span(p.Took)
}

// outcome says how a pod's shutdown ended.
func outcome(p Pod, cancelled bool) string {
	switch {
	case p.State == Gone:
		return p.ending()
	case cancelled && p.State == Running:
		return "still runs, the shutdown was called off"
	}
	return p.doing(false)
}

// bucketName names a bucket by its lowest priority.
func bucketName(lowest int32) string { return fmt.Sprintf("%d+", lowest) }

// wrapped breaks a text into lines that are not wider than width; less than 1
// means that they may be.
func wrapped(paragraph string, width int) string {
	if width < 1 {
		return paragraph
	}
	lines := strings.Split(text.WrapSoft(paragraph, width), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// many counts things.
func many(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
