// Package duration writes times as people do: 2.5s, 1m30s, 2h, 13d15h.
//
// Its functions are pure, and cannot fail. Durations that are too long are the longest one.
package duration

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Text returns a duration: below a minute in tenths of a second, below a day in seconds, else in full hours.
func Text(d time.Duration) string {
	if d = d.Round(time.Second / 10); d < time.Minute {
		return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
	}
	text := d.Round(time.Second).String()
	if hours := int64(d / time.Hour); hours >= 24 {
		text = fmt.Sprintf("%dd%dh", hours/24, hours%24)
	}
	for _, zero := range []string{"m0s", "h0m", "d0h"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// Of returns a number of seconds as a duration.
func Of[N int64 | float64](seconds N) time.Duration {
	if float64(seconds) >= float64(math.MaxInt64)/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(float64(seconds) * float64(time.Second))
}

// Seconds returns the text of a number of seconds.
func Seconds[N int64 | float64](seconds N) string { return Text(Of(seconds)) }
