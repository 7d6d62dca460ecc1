package notice

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// FuzzParseInstanceAction checks that every answer of EC2 is a notice with a time, or an error.
func FuzzParseInstanceAction(f *testing.F) {
	for _, body := range []string{
		`{"action": "terminate", "time": "2026-11-18T08:22:00Z"}`, `{"action":"stop"}`, `{"time":"2026-11-18T08:22:00Z"}`,
		`{"action":"stop","time":"0001-01-01T00:00:00Z"}`, `{"action":"x","time":"9999-12-31T23:59:59.999999999-23:59"}`, `null`, `[]`, `<html>`, "",
	} {
		f.Add([]byte(body), int64(0))
	}
	f.Fuzz(func(t *testing.T, body []byte, clockAhead int64) {
		n, err := parseInstanceAction(body, time.Duration(clockAhead))
		if err != nil {
			require.Zero(t, n)
			return
		}
		require.NotEmpty(t, n.key)
		require.False(t, n.event.Cancelled)
		withEqualClocks, err := parseInstanceAction(body, 0)
		require.NoError(t, err)
		require.Equal(t, n.key, withEqualClocks.key, "the key does not depend on the clock")
	})
}

// FuzzParseGCE checks that every answer of Compute Engine is no notice, the notice of a power off, or an error.
func FuzzParseGCE(f *testing.F) {
	for _, value := range []string{"TRUE", "FALSE", "NONE", "MIGRATE_ON_HOST_MAINTENANCE", "TERMINATE_ON_HOST_MAINTENANCE", "true", "", "<html>"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, parse := range []func(string, time.Time) (notice, error){parsePreempted, parseMaintenance} {
			n, err := parse(value, time.Now())
			isNotice := n.key != ""
			require.Equal(t, isNotice, n.event.Kind == source.KindPoweroff)
			if err != nil {
				require.Zero(t, n)
				require.Less(t, len(err.Error()), 400, "the error does not quote a whole page")
			}
		}
	})
}

// FuzzParseScheduledEvents checks that each parsed event of Azure has an ID and a kind, and that the key of its notice does
// not depend on the clock.
func FuzzParseScheduledEvents(f *testing.F) {
	for _, body := range []string{
		`{"DocumentIncarnation":1,"Events":[]}`, `{"DocumentIncarnation":0}`, `{"Events":[]}`, `null`, `{}`, `<html>`, "",
		`{"DocumentIncarnation":2,"Events":[{"EventId":"A","EventType":"Reboot","Resources":["node"],"EventStatus":"Scheduled","NotBefore":"Mon, 19 Oct 2026 18:29:47 GMT"}]}`,
		`{"DocumentIncarnation":2,"Events":[{"EventId":"A","EventType":"Preempt","Resources":["NODE","b"],"EventStatus":"Started","NotBefore":""}, {}]}`,
		`{"DocumentIncarnation":2,"Events":[{"EventId":"A","EventType":"Freeze","Resources":[null]}, null]}`,
	} {
		f.Add([]byte(body), "node")
	}
	f.Fuzz(func(t *testing.T, body []byte, name string) {
		events, err := parseScheduledEvents(body, name)
		if err != nil {
			require.Empty(t, events)
		}
		for _, e := range events {
			n := e.notice(time.Hour)
			require.NotEqual(t, source.KindUnknown, n.event.Kind)
			require.NotEmpty(t, e.EventID)
			require.Equal(t, e.notice(0).key, n.key)
			require.True(t, strings.HasPrefix(n.key, e.EventID))
		}
	})
}
