package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/klog/v2"
)

// missing is what the agent works without at the moment.
type missing struct {
	logger klog.Logger

	mu   sync.Mutex // guards what; never held while anything waits
	what map[string]string
}

func newMissing(logger klog.Logger) *missing {
	return &missing{logger: logger, what: map[string]string{}}
}

// set records why something is missing, or with nil that it is there. Changes are logged. What
// ends with ctx says nothing.
func (m *missing) set(ctx context.Context, name string, err error) {
	if ctx.Err() != nil {
		return
	}
	text := ""
	if err != nil {
		text = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	m.mu.Lock()
	before, was := m.what[name]
	if err == nil {
		delete(m.what, name)
	} else {
		m.what[name] = text
	}
	m.mu.Unlock()
	switch {
	case err != nil && before != text:
		m.logger.Error(err, "Goes on without something that will be tried again", "missing", name)
	case err == nil && was:
		m.logger.Info("Has what was missing", "missing", name)
	}
}

// any reports whether something of these is missing.
func (m *missing) any(names ...string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(names, func(name string) bool { return m.what[name] != "" })
}

// lines returns a line for each thing that is missing, in the order of their names.
func (m *missing) lines() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	lines := make([]string, 0, len(m.what))
	for _, name := range slices.Sorted(maps.Keys(m.what)) {
		lines = append(lines, fmt.Sprintf("missing: %s: %s", name, m.what[name]))
	}
	return lines
}
