package show

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/guptarohit/asciigraph"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/rollout"
	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/traffic"
)

// lineStyle is how the line of one outcome is drawn.
type lineStyle struct {
	outcome traffic.Outcome
	char    string // in a terminal without colours
	color   asciigraph.AnsiColor
}

// lineStyles returns the styles of all outcomes, in the order in which the lines are drawn: a
// line covers those before it.
func lineStyles() []lineStyle {
	return []lineStyle{
		{traffic.Answered, ".", asciigraph.Green},
		{traffic.Moved, "o", asciigraph.Blue},
		{traffic.Refused, "x", asciigraph.Red},
		{traffic.Cut, "#", asciigraph.Magenta},
	}
}

// chartHeight is the number of rows of a chart.
const chartHeight = 8

// chart draws the outcomes of one scenario over time.
func chart(r rollout.Result, style Style) string {
	columns := style.Width - 8 // the axis has numbers of up to five digits
	bins := merged(r.Bins, columns)
	highest := 1.0
	var series [][]float64
	var legends []string
	var colors []asciigraph.AnsiColor
	var chars []asciigraph.CharSet
	for _, l := range lineStyles() {
		if r.Requests.Of(l.outcome) == 0 && l.outcome != traffic.Answered {
			continue
		}
		rates := make([]float64, columns)
		for i := range rates {
			bin := bins[i*len(bins)/columns]
			rates[i] = bin.PerSecond(l.outcome)
			highest = max(highest, rates[i])
			if rates[i] == 0 && l.outcome != traffic.Answered {
				rates[i] = math.NaN() // draws nothing
			}
		}
		series, colors = append(series, rates), append(colors, l.color)
		legend, char := string(l.outcome), asciigraph.DefaultCharSet
		if style.Color {
			legend = l.color.String() + legend + asciigraph.Default.String()
		} else {
			legend, char = l.char+" "+legend, asciigraph.CreateCharSet(l.char)
		}
		legends, chars = append(legends, legend), append(chars, char)
	}
	last := bins[len(bins)-1]
	options := []asciigraph.Option{
		asciigraph.Height(chartHeight), asciigraph.Precision(0), asciigraph.LowerBound(0), asciigraph.UpperBound(highest), asciigraph.SeriesChars(chars...),
		asciigraph.XAxisRange(bins[0].AtSeconds, last.AtSeconds+last.Seconds), asciigraph.XAxisTickCount(max(columns/16, 2)),
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

// merged adds up neighbouring bins if there are more bins than columns. It returns at least one
// bin.
func merged(bins []rollout.Bin, columns int) []rollout.Bin {
	if len(bins) == 0 {
		return []rollout.Bin{{Seconds: rollout.BinSeconds}}
	}
	var sums []rollout.Bin
	each := (len(bins) + columns - 1) / columns
	for part := range slices.Chunk(bins, each) {
		sum := rollout.Bin{AtSeconds: part[0].AtSeconds}
		for _, b := range part {
			sum.Seconds += b.Seconds
			sum.Answered, sum.Refused = sum.Answered+b.Answered, sum.Refused+b.Refused
			sum.Cut, sum.Moved = sum.Cut+b.Cut, sum.Moved+b.Moved
		}
		sums = append(sums, sum)
	}
	return sums
}
