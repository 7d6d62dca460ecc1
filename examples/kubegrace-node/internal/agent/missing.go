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

// missingList has what the agent works without at the moment, such as the container runtime, and why.
type missingList struct {
	logger klog.Logger

	mu      sync.Mutex        // guards reasons; never held while anything waits
	reasons map[string]string // why something is missing, by its name
}

// newMissingList makes an empty list.
func newMissingList(logger klog.Logger) *missingList {
	return &missingList{logger: logger, reasons: map[string]string{}}
}

// update stores why something is missing or, if err is nil, that it is not missing. It logs changes. After the end of ctx
// it does nothing, because then errors come only from the end of the agent.
func (l *missingList) update(ctx context.Context, name string, err error) {
	if ctx.Err() != nil {
		return
	}
	reason := ""
	if err != nil {
		reason = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	l.mu.Lock()
	previousReason, wasMissing := l.reasons[name]
	if err == nil {
		delete(l.reasons, name)
	} else {
		l.reasons[name] = reason
	}
	l.mu.Unlock()
	switch {
	case err != nil && previousReason != reason:
		l.logger.Error(err, "Continues without something that will be tried again", "missing", name)
	case err == nil && wasMissing:
		l.logger.Info("Has what was missing", "missing", name)
	}
}

// has reports whether something with this name is missing.
func (l *missingList) has(name string) bool { return l.reason(name) != "" }

// reason returns why something is missing; "": it is not.
func (l *missingList) reason(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reasons[name]
}

// lines returns one line for each missing thing, with the reason, sorted by name.
func (l *missingList) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := make([]string, 0, len(l.reasons))
	for _, name := range slices.Sorted(maps.Keys(l.reasons)) {
		lines = append(lines, fmt.Sprintf("missing: %s: %s", name, l.reasons[name]))
	}
	return lines
}
