package show

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // PNG
	_ "gonum.org/v1/plot/vg/vgsvg" // SVG

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/rollout"
	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/traffic"
)

const (
	panelWidth  = 12 * vg.Centimeter
	panelHeight = 6 * vg.Centimeter
	margin      = 4 * vg.Millimeter
)

// outcomeColor returns the colour of an outcome. The colours are from the palette of Okabe and
// Ito, which people with colour blindness can tell apart.
func outcomeColor(o traffic.Outcome) color.Color {
	return map[traffic.Outcome]color.Color{
		traffic.Answered: color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
		traffic.Moved:    color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
		traffic.Refused:  color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
		traffic.Cut:      color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	}[o]
}

// Picture draws a panel for each result, two in a row. The format is "svg" or "png".
func Picture(w io.Writer, results []rollout.Result, format string) error {
	const columns = 2
	rows := max((len(results)+columns-1)/columns, 1)
	panels := make([][]*plot.Plot, rows)
	for i := range panels {
		panels[i] = make([]*plot.Plot, columns)
	}
	for i, r := range results {
		p, err := panel(r)
		if err != nil {
			return fmt.Errorf("failed to draw %s: %w", r.Scenario, err)
		}
		panels[i/columns][i%columns] = p
	}
	canvas, err := draw.NewFormattedCanvas(columns*panelWidth, vg.Length(rows)*panelHeight, format)
	if err != nil {
		return err
	}
	page := draw.New(canvas)
	page.SetColor(color.White) // between the panels too, because the picture may stand in a dark page
	page.Fill(page.Path())
	tiles := draw.Tiles{Rows: rows, Cols: columns, PadTop: margin, PadBottom: margin, PadLeft: margin, PadRight: margin, PadX: margin, PadY: margin}
	for i, row := range plot.Align(panels, tiles, page) {
		for j, c := range row {
			if panels[i][j] != nil {
				panels[i][j].Draw(c)
			}
		}
	}
	var picture bytes.Buffer
	if _, err := canvas.WriteTo(&picture); err != nil {
		return err
	}
	if format == "svg" {
		// Where Liberation is not installed, fonts with the same widths replace it.
		picture = *bytes.NewBuffer(bytes.ReplaceAll(picture.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")))
	}
	_, err = picture.WriteTo(w)
	return err
}

// panel draws one result: its requests over time, and vertical lines where its pods were
// deleted and got SIGTERM.
func panel(r rollout.Result) (*plot.Plot, error) {
	p := plot.New()
	sans := font.Font{Typeface: "Liberation", Variant: "Sans", Size: font.Points(10)}
	for _, f := range []*font.Font{
		&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font,
	} {
		*f = sans
	}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = r.Title, "seconds since the rolling update began", "per second"
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(wholeTicks), plot.TickerFunc(wholeTicks)
	p.Legend.Padding, p.Legend.ThumbnailWidth = vg.Points(2), vg.Points(16)
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs = true, true, margin
	p.X.Padding, p.Y.Padding, p.Y.Min = 0, 0, 0
	highest, legendEntries := 1.0, 2
	for _, l := range lineStyles() {
		if r.Requests.Of(l.outcome) == 0 {
			continue
		}
		xys := make(plotter.XYs, len(r.Bins))
		for i, b := range r.Bins {
			xys[i] = plotter.XY{X: b.AtSeconds + b.Seconds/2, Y: b.PerSecond(l.outcome)}
			highest = max(highest, xys[i].Y)
		}
		line, err := plotter.NewLine(xys)
		if err != nil {
			return nil, err
		}
		line.Color, line.Width = outcomeColor(l.outcome), vg.Points(1.5)
		legendEntries++
		p.Add(line)
		p.Legend.Add(fmt.Sprintf("%s: %d", l.outcome, r.Requests.Of(l.outcome)), line)
	}
	p.Y.Max = highest * (1.25 + 0.13*float64(legendEntries)) // the legend stands above the lines
	var deleted, signalled []float64
	for _, pod := range r.Pods {
		deleted, signalled = append(deleted, pod.DeletedSeconds), append(signalled, pod.SignalSeconds)
	}
	err := verticalLines(p, "pod deleted", highest, deleted, vg.Points(1), vg.Points(2))
	return p, errors.Join(err, verticalLines(p, "SIGTERM", highest, signalled, vg.Points(4), vg.Points(2)))
}

// wholeTicks returns the ticks of an axis, at ten whole numbers at most.
func wholeTicks(from, to float64) []plot.Tick {
	step := 1
	for _, next := range []int{2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000} {
		if (to-from)/float64(step) > 10 {
			step = next
		}
	}
	var ticks []plot.Tick
	for at := int(math.Ceil(from/float64(step))) * step; float64(at) <= to; at += step {
		ticks = append(ticks, plot.Tick{Value: float64(at), Label: strconv.Itoa(at)})
	}
	return ticks
}

// verticalLines draws a dashed vertical line at each of some times, with one entry in the
// legend.
func verticalLines(p *plot.Plot, name string, height float64, at []float64, dashes ...vg.Length) error {
	for i, x := range at {
		line, err := plotter.NewLine(plotter.XYs{{X: x, Y: 0}, {X: x, Y: height}})
		if err != nil {
			return err
		}
		line.Color, line.Width, line.Dashes = color.Gray{Y: 0x70}, vg.Points(0.7), dashes
		p.Add(line)
		if i == 0 {
			p.Legend.Add(name, line)
		}
	}
	return nil
}
