package host_test

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/klog/v2"
)

// log records what is logged at the default verbosity.
type log struct {
	mu  sync.Mutex
	all []line
}

// line is a log line without its text.
type line struct {
	err    bool
	values map[string]any
}

func (l *log) lines() []line {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// sink logs to a log.
type sink struct {
	log    *log
	values map[string]any
}

func (s *sink) Init(klog.RuntimeInfo)                  {}
func (s *sink) Enabled(level int) bool                 { return level == 0 }
func (s *sink) Info(_ int, _ string, values ...any)    { s.add(false, values) }
func (s *sink) Error(_ error, _ string, values ...any) { s.add(true, values) }
func (s *sink) WithName(string) klog.LogSink           { return s }

func (s *sink) WithValues(values ...any) klog.LogSink {
	return &sink{log: s.log, values: s.with(values)}
}

// with returns the values of the sink and these ones, by key.
func (s *sink) with(values []any) map[string]any {
	all := map[string]any{}
	maps.Copy(all, s.values)
	for pair := range slices.Chunk(values, 2) {
		all[pair[0].(string)] = pair[1]
	}
	return all
}

// add adds a line to the log.
func (s *sink) add(err bool, values []any) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.all = append(s.log.all, line{err, s.with(values)})
}
