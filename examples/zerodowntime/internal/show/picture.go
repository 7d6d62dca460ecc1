package show

import (
	"fmt"
	"image/color"
	"io"

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

// ink is the colour of an outcome, from the palette of Okabe and Ito, which people who
// do not see all colours can tell apart.
func ink(o traffic.Outcome) color.Color {
	return map[traffic.Outcome]color.Color{
		traffic.Answered: color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
		traffic.Moved:    color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff},
		traffic.Refused:  color.RGBA{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff},
		traffic.Cut:      color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	}[o]
}

// Picture draws all results, two beside each other. The format is "svg" or "png".
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
	tiles := draw.Tiles{Rows: rows, Cols: columns, PadTop: margin, PadBottom: margin, PadLeft: margin, PadRight: margin, PadX: margin, PadY: margin}
	for i, row := range plot.Align(panels, tiles, draw.New(canvas)) {
		for j, c := range row {
			if panels[i][j] != nil {
				panels[i][j].Draw(c)
			}
		}
	}
	_, err = canvas.WriteTo(w)
	return err
}

// panel draws one result: its requests over time, and when its pods were deleted (dotted)
// and got SIGTERM (dashed).
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
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs = true, true, margin
	p.X.Padding, p.Y.Padding, p.Y.Min = 0, 0, 0
	most := 1.0
	for _, l := range lines() {
		if r.Requests.Of(l.outcome) == 0 {
			continue
		}
		var xys plotter.XYs
		for _, b := range r.Bins {
			rate := b.PerSecond(l.outcome)
			xys = append(xys, plotter.XY{X: b.AtSeconds + b.Seconds/2, Y: rate})
			most = max(most, rate)
		}
		drawn, err := plotter.NewLine(xys)
		if err != nil {
			return nil, err
		}
		drawn.Color, drawn.Width = ink(l.outcome), vg.Points(1.5)
		p.Add(drawn)
		p.Legend.Add(fmt.Sprintf("%s: %d", l.outcome, r.Requests.Of(l.outcome)), drawn)
	}
	p.Y.Max = most * 1.45 // room for the legend
	for _, pod := range r.Pods {
		if err := upright(p, pod.DeletedSeconds, most, vg.Points(1), vg.Points(2)); err != nil {
			return nil, err
		}
		if err := upright(p, pod.SignalSeconds, most, vg.Points(4), vg.Points(2)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// upright marks a time.
func upright(p *plot.Plot, at, height float64, dashes ...vg.Length) error {
	mark, err := plotter.NewLine(plotter.XYs{{X: at, Y: 0}, {X: at, Y: height}})
	if err != nil {
		return err
	}
	mark.Color, mark.Width, mark.Dashes = color.Gray{Y: 0x70}, vg.Points(0.7), dashes
	p.Add(mark)
	return nil
}
