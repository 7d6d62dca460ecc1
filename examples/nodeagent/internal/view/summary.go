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
		s.count(Gone, Finished, NotStarted, Stopped), many(len(s.Pods), "pod"), span(s.Now.Sub(s.Began)), span(s.Allowed))
}

// writeSummary writes the table and the sentences of the end, in lines of a width;
// 0 means any.
func writeSummary(out *bytes.Buffer, s Snapshot, width int) {
	rows := make([]table.Row, 0, len(s.Pods)+1)
	rows = append(rows, table.Row{"pod", "priority", "bucket", "granted", "took", "outcome"})
	for _, p := range s.Pods {
		rows = append(rows, table.Row{p.Name, strconv.Itoa(int(p.Priority)), bucketName(p.Bucket), granted(p), took(p), outcome(p, s.Cancelled)})
	}
	fmt.Fprintf(out, "\n%s\n\n", render(rows, width, text.WrapSoft, text.WrapHard, []int{2, 3, 4, 5}, 2, 3, 4, 5))
	for _, sentence := range story(s) {
		fmt.Fprintln(out, wrapped(sentence, width-1))
	}
	told := legendWidth
	if width > 0 {
		told = min(told, width-1)
	}
	fmt.Fprintf(out, "\n%s\n", wrapped(legend+" "+columns, told))
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
	return p.Doing(false)
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
