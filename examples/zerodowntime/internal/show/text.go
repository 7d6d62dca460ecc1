package show

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/rollout"
)

// Style is what a terminal can show.
type Style struct {
	// Width is the number of columns; less than 40 counts as 40.
	Width int
	// Color tells the lines of a chart apart by colours. Without it they differ in their
	// characters.
	Color bool
	// ASCII restricts the output to ASCII characters.
	ASCII bool
}

// Text writes a chart of each result, a table of all of them, and advice.
func Text(w io.Writer, results []rollout.Result, delay time.Duration, style Style) error {
	style.Width = max(style.Width, 40)
	var out bytes.Buffer
	for _, r := range results {
		fmt.Fprintf(&out, "%s\n%s\n\n", text.WrapSoft(r.Scenario+": "+r.Title+"; requests per second", style.Width), chart(r, style))
	}
	fmt.Fprintf(&out, "%s\n\n", summary(results, style))
	out.WriteString(text.WrapSoft("Refused: the proxy sent the request to a pod that did not listen any more. Cut: a pod had taken it and "+
		"ended before the answer; of websockets, the connection broke. Moved: a websocket was closed with notice, and its client went to another pod.", style.Width) + "\n")
	for _, a := range Advise(results, delay) {
		fmt.Fprintf(&out, "\n%s\n", text.WrapSoft("For "+a.For+": "+a.Why, style.Width))
		for _, line := range a.manifest() {
			fmt.Fprintf(&out, "    %s\n", line)
		}
	}
	for line := range strings.Lines(out.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// summary returns the table of all results. A narrow terminal has fewer columns.
func summary(results []rollout.Result, style Style) string {
	t := table.NewWriter()
	wide := style.Width >= 72
	header := table.Row{"scenario", "sent", "refused", "cut"}
	if wide {
		header = append(header, "moved", "killed pods", "longest stop")
	}
	t.AppendHeader(header)
	for _, r := range results {
		row := table.Row{r.Scenario, r.Requests.Answered + r.Requests.Failed(), r.Requests.Refused, r.Requests.Cut}
		if wide {
			row = append(row, r.Requests.Moved, fmt.Sprintf("%d of %d", r.Killed(), len(r.Pods)), fmt.Sprintf("%.1f s", r.LongestStopSeconds()))
		}
		t.AppendRow(row)
	}
	tableStyle := table.StyleLight
	if style.ASCII {
		tableStyle = table.StyleDefault
	}
	tableStyle.Options = table.Options{SeparateHeader: true}
	tableStyle.Box.PaddingLeft = ""
	tableStyle.Box.PaddingRight = "  "
	t.SetStyle(tableStyle)
	return t.Render()
}
