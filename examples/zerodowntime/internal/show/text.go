// Package show shows what was measured: in a terminal, as JSON and as a picture.
package show

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/guptarohit/asciigraph"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/rollout"
	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/traffic"
)

// Style is what a terminal can show.
type Style struct {
	// Width is how many columns there are; fewer than 40 are taken for 40.
	Width int
	// Color: lines are told apart by colours, and else by their characters.
	Color bool
	// ASCII: nothing beyond ASCII is written.
	ASCII bool
}

// line is how the requests of one outcome are drawn.
type line struct {
	outcome traffic.Outcome
	mark    string // without colours
	color   asciigraph.AnsiColor
}

// lines are all of them; the later ones lie above the earlier.
func lines() []line {
	return []line{
		{traffic.Answered, ".", asciigraph.Green},
		{traffic.Moved, "o", asciigraph.Blue},
		{traffic.Refused, "x", asciigraph.Red},
		{traffic.Cut, "#", asciigraph.Magenta},
	}
}

// height is how many rows a chart has.
const height = 8

// Text writes charts, a table and advice.
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
		for _, l := range a.manifest() {
			fmt.Fprintf(&out, "    %s\n", l)
		}
	}
	for line := range strings.Lines(out.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// chart draws a result over time.
func chart(r rollout.Result, style Style) string {
	columns := style.Width - 8 // beside the numbers of up to five digits
	bins := fitted(r.Bins, columns)
	most := 1.0
	var series [][]float64
	var legends []string
	var colors []asciigraph.AnsiColor
	var marks []asciigraph.CharSet
	for _, l := range lines() {
		if r.Requests.Of(l.outcome) == 0 && l.outcome != traffic.Answered {
			continue
		}
		rates := make([]float64, columns)
		for i := range rates {
			bin := bins[i*len(bins)/columns]
			rates[i] = bin.PerSecond(l.outcome)
			most = max(most, rates[i])
			if rates[i] == 0 && l.outcome != traffic.Answered {
				rates[i] = math.NaN() // no line where nothing was
			}
		}
		series, colors = append(series, rates), append(colors, l.color)
		legend, mark := string(l.outcome), asciigraph.DefaultCharSet
		if style.Color {
			legend = l.color.String() + legend + asciigraph.Default.String()
		} else {
			legend, mark = l.mark+" "+legend, asciigraph.CreateCharSet(l.mark)
		}
		legends, marks = append(legends, legend), append(marks, mark)
	}
	end := bins[len(bins)-1]
	options := []asciigraph.Option{
		asciigraph.Height(height), asciigraph.Precision(0), asciigraph.LowerBound(0), asciigraph.UpperBound(most), asciigraph.SeriesChars(marks...),
		asciigraph.XAxisRange(bins[0].AtSeconds, end.AtSeconds+end.Seconds), asciigraph.XAxisTickCount(max(columns/16, 2)),
		asciigraph.XAxisValueFormatter(func(s float64) string { return fmt.Sprintf("%.0f s", s) }),
	}
	if style.Color {
		options = append(options, asciigraph.SeriesColors(colors...))
	}
	drawn := asciigraph.PlotMany(series, options...) + "\n" + strings.Join(legends, "   ")
	if style.ASCII {
		drawn = strings.NewReplacer("┤", "|", "┼", "+", "└", "+", "─", "-", "┬", "+").Replace(drawn)
	}
	return drawn
}

// fitted are bins, with neighbours added up where there are more than columns.
func fitted(bins []rollout.Bin, columns int) []rollout.Bin {
	if len(bins) == 0 {
		return []rollout.Bin{{Seconds: rollout.BinSeconds}}
	}
	var fit []rollout.Bin
	each := (len(bins) + columns - 1) / columns
	for part := range slices.Chunk(bins, each) {
		sum := rollout.Bin{AtSeconds: part[0].AtSeconds}
		for _, b := range part {
			sum.Seconds += b.Seconds
			sum.Answered, sum.Refused = sum.Answered+b.Answered, sum.Refused+b.Refused
			sum.Cut, sum.Moved = sum.Cut+b.Cut, sum.Moved+b.Moved
		}
		fit = append(fit, sum)
	}
	return fit
}

// summary is the table of all results.
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
	look := table.StyleLight
	if style.ASCII {
		look = table.StyleDefault
	}
	look.Options = table.Options{SeparateHeader: true}
	look.Box.PaddingLeft = ""
	look.Box.PaddingRight = "  "
	t.SetStyle(look)
	return t.Render()
}
