package machine

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Unlimited is a limit of logind that never ends: InhibitDelayMaxSec=infinity.
const Unlimited = time.Duration(math.MaxInt64)

// timespanPart is a number with a unit, as systemd.time(7) has it.
var timespanPart = regexp.MustCompile(`^\s*\+?([0-9]*\.?[0-9]+)\s*([a-zA-Zµμ]*)\s*`)

// unitLength returns the length of a unit of systemd.time(7). A number without one means seconds.
func unitLength(name string) (time.Duration, bool) {
	switch name {
	case "usec", "us", "µs", "μs": // U+00B5 and U+03BC
		return time.Microsecond, true
	case "msec", "ms":
		return time.Millisecond, true
	case "", "seconds", "second", "sec", "s":
		return time.Second, true
	case "minutes", "minute", "min", "m":
		return time.Minute, true
	case "hours", "hour", "hr", "h":
		return time.Hour, true
	case "days", "day", "d":
		return 24 * time.Hour, true
	case "weeks", "week", "w":
		return 7 * 24 * time.Hour, true
	case "months", "month", "M":
		return 2629800 * time.Second, true
	case "years", "year", "y":
		return 31557600 * time.Second, true
	}
	return 0, false
}

// parseTimespan parses the value of InhibitDelayMaxSec as logind does: the sum of numbers with units.
func parseTimespan(text string) (time.Duration, error) {
	rest := strings.TrimSpace(text)
	if rest == "infinity" {
		return Unlimited, nil
	}
	var sum float64
	for first := true; first || rest != ""; first = false {
		part := timespanPart.FindStringSubmatch(rest)
		if part == nil {
			return 0, fmt.Errorf("%q is no time span of systemd", text)
		}
		number, err := strconv.ParseFloat(part[1], 64)
		length, known := unitLength(part[2])
		if err != nil || !known {
			return 0, fmt.Errorf("%q is no time span of systemd", text)
		}
		sum += number * float64(length)
		rest = rest[len(part[0]):]
	}
	if sum >= float64(Unlimited) {
		return Unlimited, nil
	}
	return time.Duration(sum), nil
}
