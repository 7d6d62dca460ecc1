package output

import (
	"fmt"
	"math"
	"strings"
)

// clean makes a text safe for a terminal: names come from a file, and a column has a
// width only for the letters that Kubernetes allows in them.
func clean(words string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, words)
}

// snip shortens a name in its middle: names of pods begin with what they are and end
// with what tells them apart.
func (s Screen) snip(name string, width int) string {
	if len(name) <= width {
		return name
	}
	mark := "…"
	if s.ASCII {
		mark = "~"
	}
	tail := (width - 1) / 2
	return name[:width-1-tail] + mark + name[len(name)-tail:]
}

// seconds is a time, in seconds with a fraction if there is one.
func seconds(s float64) string {
	switch {
	case s >= 1e7:
		return "more than 100 days"
	case s == math.Trunc(s):
		return fmt.Sprintf("%.0f s", s)
	default:
		return fmt.Sprintf("%.1f s", s)
	}
}

// cell is a time in at most six letters.
func cell(s float64) string {
	switch {
	case s >= 1e7:
		return ">100d"
	case s >= 1e5:
		return fmt.Sprintf("%.0fh", s/3600)
	case s == math.Trunc(s):
		return fmt.Sprintf("%.0fs", s)
	default:
		return fmt.Sprintf("%.1fs", s)
	}
}

// count is a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
