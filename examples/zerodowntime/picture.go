package main

import (
	"bytes"
	"fmt"
	"image/color"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The sizes are pixels on a screen of 400 pixels, that of a phone. On a larger screen the picture is enlarged.
const (
	pictureWidth  vg.Length = 400
	pictureHeight vg.Length = 270
	margins       vg.Length = 6
	barWidth      vg.Length = 44
	fontSize      vg.Length = 11
)

// drawPicture returns a bar chart as SVG. Each result has a bar, whose height is the number of lost requests.
// delay is how late the load balancer learns of changes, for the title.
func drawPicture(results []result, delay time.Duration) ([]byte, error) {
	// The title and the fonts.
	p := plot.New()
	sans := font.Font{Typeface: "Liberation", Variant: "Sans", Size: fontSize}
	for _, f := range []*font.Font{&p.Title.TextStyle.Font, &p.Y.Label.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font} {
		*f = sans
	}
	p.Title.Text = fmt.Sprintf("Rolling update of %d pods at %d requests per second;\nthe load balancer learns %g s late that a pod ends", replicas, rate, delay.Seconds())
	p.Y.Label.Text = "requests lost"
	// A bar for each result: its height, the text below it, and its count above it.
	lost, labels := make(plotter.Values, len(results)), make([]string, len(results))
	counts := plotter.XYLabels{XYs: make(plotter.XYs, len(results)), Labels: make([]string, len(results))}
	highest := 10.0 // for an axis even if no request is lost
	for i, r := range results {
		lines := r.scenario.lines()
		for len(lines) < 3 {
			lines = append(lines, " ") // labels with different numbers of lines would begin at different heights
		}
		lost[i], labels[i] = float64(r.lost), strings.Join(lines, "\n")
		counts.XYs[i], counts.Labels[i] = plotter.XY{X: float64(i), Y: lost[i]}, strconv.Itoa(r.lost)
		highest = max(highest, lost[i])
	}
	bars, err := plotter.NewBarChart(lost, barWidth)
	if err != nil {
		return nil, fmt.Errorf("failed to draw the bars: %w", err)
	}
	bars.Color, bars.LineStyle.Width = color.RGBA{R: 0xd5, G: 0x5e, A: 0xff}, 0
	above, err := plotter.NewLabels(counts)
	if err != nil {
		return nil, fmt.Errorf("failed to draw the counts: %w", err)
	}
	for i := range above.TextStyle {
		above.TextStyle[i].Font, above.TextStyle[i].XAlign, above.TextStyle[i].YAlign = sans, draw.XCenter, draw.YBottom
	}
	above.Offset.Y = margins / 2
	// The axes.
	p.Add(bars, above)
	p.NominalX(labels...)
	p.Y.Min, p.Y.Max = 0, 1.1*highest
	p.X.Min, p.X.Max = -0.5, float64(len(results))-0.5

	// The page with its margins.
	canvas := vgsvg.New(pictureWidth, pictureHeight)
	page := draw.New(canvas)
	page.SetColor(color.White) // the picture may stand in a dark page
	page.Fill(page.Path())
	p.Draw(draw.Crop(page, margins, -margins, margins, -margins))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return nil, fmt.Errorf("failed to write the picture: %w", err)
	}
	// Where Liberation is not installed, fonts with the same widths replace it.
	return bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}
