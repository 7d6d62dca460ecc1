package embedded

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// ScriptPrefix is the prefix of the annotation that holds the script of a container. The
// name of the container follows.
const ScriptPrefix = "nodeagent.kubegrace.dev/script."

// cutScript returns the container whose script an annotation is.
func cutScript(key string) (container string, ok bool) { return strings.CutPrefix(key, ScriptPrefix) }

// scriptOf returns the script of a container, the zero value without an annotation.
func scriptOf(pod *v1.Pod, container string) (lifecycletest.Script, error) {
	s, err := parse(pod.Annotations[ScriptPrefix+container])
	if err != nil {
		return s, fmt.Errorf("annotation %s%s: %w", ScriptPrefix, container, err)
	}
	return s, nil
}

// parse parses a script, which is a list of sentences, separated by commas.
func parse(text string) (lifecycletest.Script, error) {
	var s lifecycletest.Script
	for sentence := range strings.SplitSeq(text, ",") {
		sentence = strings.Join(strings.Fields(sentence), " ")
		if sentence == "" {
			continue
		}
		if err := addSentence(&s, sentence); err != nil {
			return s, err
		}
	}
	return s, nil
}

// addSentence adds what one sentence says to a script.
func addSentence(s *lifecycletest.Script, sentence string) error {
	if sentence == "ignores TERM" {
		s.IgnoreTerm = true
		return nil
	}
	for _, form := range []struct {
		prefix, suffix string
		set            func(time.Duration)
	}{
		{"exits ", " after TERM", func(d time.Duration) { s.ExitAfterTerm = d }},
		{"exec takes ", "", func(d time.Duration) { s.Exec = sleepCommand(d) }},
	} {
		text, hasPrefix := strings.CutPrefix(sentence, form.prefix)
		text, hasSuffix := strings.CutSuffix(text, form.suffix)
		if !hasPrefix || !hasSuffix {
			continue
		}
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return fmt.Errorf("%q: %q is no time such as 3s or 500ms", sentence, text)
		}
		form.set(d)
		return nil
	}
	return fmt.Errorf(`%q is not understood; known are "exits 3s after TERM", "ignores TERM", "exec takes 2s"`, sentence)
}

// sleepCommand returns an Exec for a script: each command takes the time d, and fails if
// its context ends earlier.
func sleepCommand(d time.Duration) func(context.Context, []string) ([]byte, error) {
	return func(ctx context.Context, _ []string) ([]byte, error) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
