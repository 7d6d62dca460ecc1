package host_test

import (
	"slices"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// log is a logger that keeps the lines that are logged at the default verbosity.
type log struct{ klog.Logger }

// newLog returns an empty log.
func newLog() log {
	return log{ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.Verbosity(0), ktesting.BufferLogs(true)))}
}

// line is a log line: its values, but not its text.
type line struct {
	isError bool
	values  map[string]any
}

// lines returns what was logged so far.
func (l log) lines() (lines []line) {
	for _, entry := range l.GetSink().(ktesting.Underlier).GetBuffer().Data() {
		values := map[string]any{}
		for pair := range slices.Chunk(slices.Concat(entry.WithKVList, entry.ParameterKVList), 2) {
			values[pair[0].(string)] = pair[1]
		}
		lines = append(lines, line{entry.Type == ktesting.LogError, values})
	}
	return lines
}
