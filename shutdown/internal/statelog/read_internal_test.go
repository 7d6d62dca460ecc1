package statelog

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// bootOfLog is the ID of the boot in which the logs of these tests are written.
const bootOfLog = "one"

// growingLog returns the text of a log to which entries were appended one after the other. For each of these steps it also
// returns the size of the text and the contents of the log after the step.
func growingLog(t testing.TB) (text []byte, sizes []int, states []node.Entries) {
	t.Helper()
	first, second := wholeShutdown(t), wholeShutdown(t)
	second.Number = first.Number + 1
	planned, signalled, ended := wholePod(t), wholePod(t), wholePod(t) // three states of one pod
	planned.Signalled, planned.Deadline, planned.Ended, planned.Policy = time.Time{}, time.Time{}, time.Time{}, ""
	signalled.Ended = time.Time{}
	var entries newestEntries
	text, err := entries.text(bootOfLog)
	require.NoError(t, err)
	for _, changed := range []node.Entries{
		{Shutdown: first},
		{Pods: []*node.Pod{planned}},
		{Pods: []*node.Pod{signalled}},
		{Shutdown: second},
		{Pods: []*node.Pod{ended}},
		{Shutdown: first},
	} {
		lines, err := entries.update(changed)
		require.NoError(t, err)
		text = append(text, lines...)
		found := parse(text, bootOfLog, now())
		require.Empty(t, found.Errs)
		sizes, states = append(sizes, len(text)), append(states, found.Entries)
	}
	return text, sizes, states
}

// A log is cut at any byte, and zero bytes may follow, as after a power cut. Reading it gives all entries that were written
// completely. If at least its first line is whole, there is no error.
func TestALogTruncatedAtAnyByteHasTheEarlierEntries(t *testing.T) {
	text, sizes, states := growingLog(t)
	firstLineEnd := bytes.IndexByte(text, '\n')
	step := 1
	if need.Shortened(t, "four of five bytes at which a state log ends") {
		step = 5
	}
	for size := 0; size <= len(text); size += step {
		for _, after := range []string{"", "\x00\x00\x00", "\x00\n"} {
			found := parse(append(bytes.Clone(text[:size]), after...), bootOfLog, now())
			var want node.Entries
			for i, state := range states {
				if sizes[i] <= size {
					want = state
				}
			}
			require.Equal(t, want, found.Entries, "%d of %d bytes", size, len(text))
			if size > firstLineEnd {
				require.Empty(t, found.Errs, "%d of %d bytes", size, len(text))
				require.True(t, found.SameBoot)
			}
		}
	}
}

// FuzzRead reads any input as a log. Entries that are accepted can be stored and read again, and a Node handles them
// without a panic.
func FuzzRead(f *testing.F) {
	text, sizes, _ := growingLog(f)
	for _, size := range sizes {
		f.Add(text[:size])
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		found := parse(text, bootOfLog, now())
		var kept newestEntries
		_, err := kept.update(found.Entries)
		require.NoError(t, err)
		again, err := kept.text(bootOfLog)
		require.NoError(t, err)
		reread := parse(again, bootOfLog, now())
		require.Empty(t, reread.Errs)
		require.Len(t, reread.Entries.Pods, len(found.Entries.Pods))
		drainWith(found)
	})
}

// drainWith takes a Node that has read these contents through a shutdown, a cancellation, TerminateAll and the end of Run.
// It asserts nothing: the test fails if the Node panics.
func drainWith(found Contents) {
	for _, sameBoot := range []bool{true, false} {
		n := node.New(node.Config{Schedule: plan.Schedule{{Seconds: 20}, {Priority: 10, Seconds: 10}}, Options: plan.Options{Steps: plan.Steps{Publish: true, Readiness: true, Statuses: true}}})
		at := now()
		var step func(in node.Input)
		step = func(in node.Input) {
			for _, e := range n.Step(at, in) {
				switch e.Do {
				case node.Kill:
					if e.Call%2 == 0 { // every other kill returns
						step(node.Killed{Call: e.Call, Key: e.Pod.Key, Outcome: "Graceful"})
					}
				case node.SendMessage:
					step(node.MessageAnswered{Call: e.Call, Key: e.Pod.Key})
				case node.List:
					step(node.Listed{Call: e.Call})
				case node.Publish:
					step(node.Published{Call: e.Call})
				default:
				}
			}
		}
		for _, in := range []node.Input{
			node.LogOpening{},
			node.LogRead{Entries: found.Entries, SameBoot: sameBoot},
			node.HostLimit(30 * time.Second),
			node.HostAnswered{Known: true, Event: &source.Event{}},
			node.Event{Host: true},
			node.Event{Host: true, Event: source.Event{Cancelled: true}},
			node.Event{Host: true},
			node.TerminateAll{},
			node.RunEnds{},
		} {
			step(in)
			for range 20 {
				if at = at.Add(time.Millisecond); n.Wake().After(at) {
					at = n.Wake()
				}
				step(node.Tick{})
			}
		}
	}
}

// One or two values of a log with a shutdown and a pod are replaced by random ones. The offsets of the second one are those in
// the undamaged text, so that any bytes may be replaced. An agent that reads the log never panics. If it reads no shutdown or
// no pod, there is an error.
func TestDamagedLogsNeverPanic(t *testing.T) {
	text, _, _ := growingLog(t)
	value := regexp.MustCompile(`:("[^"]*"|[-0-9]+|true|false)`)
	values := value.FindAllIndex(text, -1)
	others := []string{"0", "-1", "9223372036854775807", "-9223372036854775808", "null", "true", `""`, "[]", "{}", `"0001-01-01T00:00:00Z"`, `"9999-12-31T23:59:59Z"`, `"1970-01-01T00:00:00Z"`, "1e9"}
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 41)) //nolint:gosec // a seed
		damaged := bytes.Clone(text)
		for range 1 + random.IntN(2) {
			if at := values[random.IntN(len(values))]; at[1] <= len(damaged) {
				damaged = slices.Concat(damaged[:at[0]+1], []byte(others[random.IntN(len(others))]), damaged[at[1]:])
			}
		}
		found := parse(damaged, bootOfLog, now())
		if len(found.Errs) == 0 {
			require.NotNil(t, found.Entries.Shutdown, "seed %d", seed)
			require.NotEmpty(t, found.Entries.Pods, "seed %d", seed)
		}
		require.NotPanics(t, func() { drainWith(found) }, "seed %d", seed)
	}
}
