//go:build linux

package logindconf

import (
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
)

// timespans are values that people and distributions use, and some that systemd refuses.
var timespans = []string{
	"5", "0", "30s", "1.5s", ".5", "1min 30s", "1h30", "2 m", "infinity", "1M", "1y", "2w 3d", "5 6s", "+5", "10us", "1µs", "1μs",
	"7 hr", "8hours", "250ms", "90 seconds", " 4 ", "1d1h1min1s1ms1us", "0.000001s", "00012", "500000years",
	"", " ", "5 foo", "-3s", "1secs", "1.", "1e3", "s5", "5s,", "infinity s", "++5", "1..5", "1 . 5", "five", "µ",
}

// parseTimespan reads values of InhibitDelayMaxSec: a number without a unit means seconds, parts are added up, and a value
// longer than the longest time.Duration (292 years) is unlimited. What systemd refuses is an error.
func TestParseTimespan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5": 5 * time.Second, "1.5s": 1500 * time.Millisecond, "1min 30s": 90 * time.Second,
		"infinity": Unlimited, "2min": 2 * time.Minute, "99999 years": Unlimited,
		"200years 200years": Unlimited,
	} {
		got, err := parseTimespan(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "x", "5x", "-1", "1.", "."} {
		_, err := parseTimespan(text)
		require.ErrorIs(t, err, errTimespan, text)
	}
}

// parseTimespan must accept each text that systemd-analyze accepts, with the same length, and refuse each text that
// systemd-analyze refuses.
func TestParseTimespanLikeSystemd(t *testing.T) {
	analyze := need.Program(t, "systemd-analyze", "systemd")
	microseconds := regexp.MustCompile(`(?:μs|us): (\d+)`)
	for _, text := range timespans {
		out, refused := exec.Command(analyze, "timespan", "--", text).CombinedOutput()
		got, err := parseTimespan(text)
		if refused != nil {
			require.Error(t, err, "%q: %s", text, out)
			continue
		}
		require.NoError(t, err, text)
		found := microseconds.FindSubmatch(out)
		require.NotNil(t, found, "%s", out)
		want, err := strconv.ParseUint(string(found[1]), 10, 64)
		require.NoError(t, err)
		require.Equal(t, FromMicroseconds(want), got, text)
	}
}

// Whatever the text is, the result is not negative. A sum that is too long does not overflow: the text written twice is
// not shorter than the text written once.
func FuzzParseTimespan(f *testing.F) {
	for _, text := range timespans {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		span, err := parseTimespan(text)
		require.GreaterOrEqual(t, span, time.Duration(0))
		if err == nil {
			twice, err := parseTimespan(text + " " + text)
			if err == nil { // "infinity" must stand alone, so that twice is an error
				require.GreaterOrEqual(t, twice, span, "it saturates, it does not overflow")
			}
		}
	})
}

// logind's infinity, and anything longer than a time.Duration, becomes unlimited and does not overflow.
func TestFromMicrosecondsSaturates(t *testing.T) {
	for usec, want := range map[uint64]time.Duration{
		0: 0, 5_000_000: 5 * time.Second, ^uint64(0): Unlimited, 1 << 63: Unlimited,
		9223372036854775: 9223372036854775 * time.Microsecond, 9223372036854776: Unlimited, // the longest time.Duration, and 1 µs more
	} {
		require.Equal(t, want, FromMicroseconds(usec))
	}
}

// Every unit of systemd.time(7) is parsed, under all its names.
func TestAllUnitsOfTimespansAreParsed(t *testing.T) {
	for length, names := range map[time.Duration][]string{
		time.Microsecond: {"usec", "us", "µs", "μs"}, time.Millisecond: {"msec", "ms"},
		time.Second: {"", "seconds", "second", "sec", "s"}, time.Minute: {"minutes", "minute", "min", "m"},
		time.Hour: {"hours", "hour", "hr", "h"}, 24 * time.Hour: {"days", "day", "d"}, 168 * time.Hour: {"weeks", "week", "w"},
		2629800 * time.Second: {"months", "month", "M"}, 31557600 * time.Second: {"years", "year", "y"}, // a year has 365.25 days
	} {
		for _, name := range names {
			got, err := parseTimespan("2" + name)
			require.NoError(t, err)
			require.Equal(t, 2*length, got, name)
		}
	}
}
