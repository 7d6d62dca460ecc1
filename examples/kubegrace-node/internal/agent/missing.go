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

// missing has what the agent works without at the moment, such as the container runtime, and why.
type missing struct {
	logger klog.Logger

	mu   sync.Mutex        // guards what; never held while anything waits
	what map[string]string // the reason by the name of the thing
}

// newMissing makes a missing from which nothing is missing yet.
func newMissing(logger klog.Logger) *missing {
	return &missing{logger: logger, what: map[string]string{}}
}

// set records why something is missing; a nil error says that it is there. It logs changes. After the end of
// ctx it does nothing, because errors are then only due to the end of the agent.
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
		m.logger.Error(err, "Continues without something that will be tried again", "missing", name)
	case err == nil && was:
		m.logger.Info("Has what was missing", "missing", name)
	}
}

// any reports whether at least one of the named things is missing.
func (m *missing) any(names ...string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(names, func(name string) bool { return m.what[name] != "" })
}

// lines returns one line for each missing thing, with the reason, sorted by name.
func (m *missing) lines() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	lines := make([]string, 0, len(m.what))
	for _, name := range slices.Sorted(maps.Keys(m.what)) {
		lines = append(lines, fmt.Sprintf("missing: %s: %s", name, m.what[name]))
	}
	return lines
}
