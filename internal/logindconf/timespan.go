package logindconf

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// errTimespan is the error of a value that is no time span.
var errTimespan = errors.New("not a time span")

// Unlimited is a limit that never ends: infinity, or a value that does not fit into a [time.Duration].
const Unlimited = time.Duration(math.MaxInt64)

// unitLength returns the length of a unit of systemd.time(7), such as "min"; known is false for any other name.
// No unit means seconds, as in all settings whose name ends with Sec.
func unitLength(name string) (length time.Duration, known bool) {
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
		return 2629800 * time.Second, true // a twelfth of a year
	case "years", "year", "y":
		return 31557600 * time.Second, true // 365.25 days
	}
	return 0, false
}

// parseTimespan parses a time span as logind does: numbers with units, such as "1min 30s", are added up. A sum
// that is too long becomes [Unlimited].
func parseTimespan(text string) (time.Duration, error) {
	rest := strings.TrimSpace(text)
	switch rest {
	case "":
		return 0, fmt.Errorf("%q: %w", text, errTimespan)
	case "infinity":
		return Unlimited, nil
	}
	var sum time.Duration // saturates
	for rest != "" {
		part, after, err := parsePart(rest)
		if err != nil {
			return 0, fmt.Errorf("%q: %w", text, err)
		}
		sum = min(sum, Unlimited-part) + part
		rest = strings.TrimLeftFunc(after, unicode.IsSpace)
	}
	return sum, nil
}

// parsePart parses the number with its unit at the beginning of text, and returns the text after them. The number has
// digits, at most one point, which is not the last character, and perhaps a plus sign. No unit means seconds. A part
// that is too long becomes [Unlimited].
func parsePart(text string) (part time.Duration, rest string, err error) {
	digits, rest := cutWhile(strings.TrimPrefix(text, "+"), func(r rune) bool { return r >= '0' && r <= '9' || r == '.' })
	name, rest := cutWhile(strings.TrimLeftFunc(rest, unicode.IsSpace), unicode.IsLetter)
	length, known := unitLength(name)
	number, err := strconv.ParseFloat(digits, 64)
	isNumber := err == nil && !strings.HasSuffix(digits, ".")
	if !isNumber || !known {
		return 0, "", errTimespan
	}
	if number >= float64(Unlimited/length) {
		return Unlimited, rest, nil
	}
	return time.Duration(number * float64(length)), rest, nil
}

// cutWhile splits text: head has the first runes for which isHead returns true, and rest begins with the first other
// rune.
func cutWhile(text string, isHead func(rune) bool) (head, rest string) {
	end := strings.IndexFunc(text, func(r rune) bool { return !isHead(r) })
	if end < 0 {
		end = len(text)
	}
	return text[:end], text[end:]
}

// FromMicroseconds converts logind's unit. A value that does not fit becomes [Unlimited], also logind's
// infinity, which is the largest uint64.
func FromMicroseconds(usec uint64) time.Duration {
	if usec > uint64(Unlimited/time.Microsecond) {
		return Unlimited
	}
	return time.Duration(usec) * time.Microsecond
}
