// Package duration writes durations as people do: 2.5s, 1m30s, 2h, 13d15h.
//
// Its functions have no state and cannot fail. A duration that is too long for a time.Duration becomes the
// longest one.
package duration

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Text returns a duration as people write it. Below a minute it has tenths of a second, below a day whole
// seconds, and from a day on only days and hours.
func Text(d time.Duration) string {
	d = d.Round(time.Second / 10)
	if d < time.Minute {
		return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
	}
	text := d.Round(time.Second).String()
	if hours := int64(d / time.Hour); hours >= 24 {
		text = fmt.Sprintf("%dd%dh", hours/24, hours%24)
	}
	for _, end := range []struct{ unit, zero string }{{"m", "0s"}, {"h", "0m"}, {"d", "0h"}} { // 2h0m0s becomes 2h0m, and then 2h
		if strings.HasSuffix(text, end.unit+end.zero) {
			text = strings.TrimSuffix(text, end.zero)
		}
	}
	return text
}

// Of returns a number of seconds as a time.Duration. A number that is too large gives the longest duration.
func Of[N int64 | float64](seconds N) time.Duration {
	if float64(seconds) >= float64(math.MaxInt64)/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(float64(seconds) * float64(time.Second))
}

// Seconds returns a number of seconds in the format of [Text].
func Seconds[N int64 | float64](seconds N) string { return Text(Of(seconds)) }
