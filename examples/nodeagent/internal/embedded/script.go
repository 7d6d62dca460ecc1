package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// ScriptPrefix begins the annotation that scripts a container; the container's
// name follows.
const ScriptPrefix = "nodeagent.kubegrace.dev/script."

// errCommand is how a command ends whose script has it fail.
var errCommand = errors.New("command exited with 1, as its script says")

// ValidateScripts finds scripts that cannot be read and scripts of containers
// that the pod does not have.
func ValidateScripts(pod *v1.Pod) field.ErrorList {
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(pod.Annotations)) {
		name, ok := strings.CutPrefix(key, ScriptPrefix)
		if !ok {
			continue
		}
		at := field.NewPath("metadata", "annotations").Key(key)
		if !slices.ContainsFunc(containers, func(c v1.Container) bool { return c.Name == name }) {
			errs = append(errs, field.Invalid(at, pod.Annotations[key], fmt.Sprintf("the pod has no container %q", name)))
		}
		if _, err := parse(pod.Annotations[key]); err != nil {
			errs = append(errs, field.Invalid(at, pod.Annotations[key], err.Error()))
		}
	}
	return errs
}

// scriptOf is the script of a container; without an annotation the zero one.
func scriptOf(pod *v1.Pod, container string) (lifecycletest.Script, error) {
	s, err := parse(pod.Annotations[ScriptPrefix+container])
	if err != nil {
		return s, fmt.Errorf("annotation %s%s: %w", ScriptPrefix, container, err)
	}
	return s, nil
}

// parse reads the sentences of a script.
func parse(text string) (lifecycletest.Script, error) {
	var s lifecycletest.Script
	for sentence := range strings.SplitSeq(text, ",") {
		sentence = strings.Join(strings.Fields(sentence), " ")
		if sentence == "" {
			continue
		}
		if err := obey(&s, sentence); err != nil {
			return s, err
		}
	}
	return s, nil
}

// obey adds one sentence to a script.
func obey(s *lifecycletest.Script, sentence string) error {
	switch sentence {
	case "ignores TERM":
		s.IgnoreTerm = true
		return nil
	case "exec fails":
		s.Exec = func(context.Context, []string) ([]byte, error) { return nil, errCommand }
		return nil
	case "StopContainer fails":
		s.FailStops = -1
		return nil
	case "StopContainer hangs":
		s.HangStops = -1
		return nil
	}
	return obeyTimed(s, sentence)
}

// obeyTimed adds a sentence that has a duration in it.
func obeyTimed(s *lifecycletest.Script, sentence string) error {
	for _, known := range []struct {
		before, after string
		set           func(time.Duration)
	}{
		{"exits by itself after ", "", func(d time.Duration) { s.ExitAfter = d }},
		{"exits ", " after TERM", func(d time.Duration) { s.ExitAfterTerm = d }},
		{"exec takes ", "", func(d time.Duration) { s.Exec = takes(d) }},
	} {
		rest, begins := strings.CutPrefix(sentence, known.before)
		rest, ends := strings.CutSuffix(rest, known.after)
		if !begins || !ends {
			continue
		}
		d, err := time.ParseDuration(rest)
		if err != nil || d <= 0 {
			return fmt.Errorf("%q: %q is no time such as 3s or 500ms", sentence, rest)
		}
		known.set(d)
		return nil
	}
	return fmt.Errorf(`%q is not understood; known are "exits 3s after TERM", "ignores TERM", "exits by itself after 5s", "exec takes 2s", "exec fails", "StopContainer fails", "StopContainer hangs"`, sentence)
}

// takes plays a command that needs its time.
func takes(d time.Duration) func(context.Context, []string) ([]byte, error) {
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
