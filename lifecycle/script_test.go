//go:build go1.25

package lifecycle_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// TestScripts plays testdata/scripts/*.txt; the judge checks each. A script has one pod:
//
//	pod grace=SECONDS
//	main|sidecar NAME [hook=DURATION] [exits=DURATION] [starts=DURATION] [stubborn] [fails=N] [hangs=N] [early]
//	lists every=DURATION
//	DURATION terminate | shorten SECONDS | kill NAME | exit NAME | start NAME
//
// go test -run TestScripts -rewrite writes the expected output into the files.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, data *datadriven.TestData) string {
			story := ""
			synctest.Test(t, func(t *testing.T) { story = playScript(t, data.Input) })
			return story
		})
	})
}

// script is a script being played.
type script struct {
	*judge.Terminator

	began   time.Time
	record  *judge.Record
	runtime *lifecycletest.Runtime
	pod     *v1.Pod
	scripts map[string]lifecycletest.Script
	hooks   map[string]time.Duration
	delayed map[string]bool // containers that a start call starts
	options lifecycle.TerminatorOptions
}

// playScript plays a script, and returns what happened, one fact per line.
func playScript(t *testing.T, text string) string {
	t.Helper()
	s := &script{
		began: time.Now(), record: judge.NewRecord(), runtime: lifecycletest.NewRuntime(), scripts: map[string]lifecycletest.Script{}, hooks: map[string]time.Duration{}, delayed: map[string]bool{},
		pod: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "pod"}},
	}
	s.options = lifecycle.TerminatorOptions{Runtime: s.runtime, Exits: s.runtime, Hooks: s, GiveUpAfter: 10 * time.Second}
	var calls [][]string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if _, err := time.ParseDuration(fields[0]); err == nil {
			calls = append(calls, fields)
		} else {
			s.prepare(t, fields)
		}
	}
	var err error
	s.Terminator, err = s.record.NewTerminator(s.options)
	require.NoError(t, err)
	for _, c := range s.pod.Spec.Containers {
		s.begin(c.Name)
	}
	for _, c := range s.pod.Spec.InitContainers {
		s.begin(c.Name)
	}
	for _, call := range calls {
		at, _ := time.ParseDuration(call[0])
		time.AfterFunc(at, func() { s.call(t, call[1:]) })
	}
	<-time.After(time.Hour)
	require.Empty(t, judge.Terminations(s.record))
	s.runtime.Release()
	require.NoError(t, s.Close(t.Context()))
	return s.story()
}

// prepare applies a line about the pod, a container or the runtime.
func (s *script) prepare(t *testing.T, fields []string) {
	t.Helper()
	value := func(key string) (text string, found bool) {
		for _, f := range fields {
			if after, ok := strings.CutPrefix(f, key); ok {
				return strings.TrimPrefix(after, "="), true
			}
		}
		return "", false
	}
	span := func(key string) time.Duration {
		text, found := value(key)
		if !found {
			return 0
		}
		d, err := time.ParseDuration(text)
		require.NoError(t, err)
		return d
	}
	number := func(key string) (n int) {
		if text, found := value(key); found {
			_, err := fmt.Sscan(text, &n)
			require.NoError(t, err)
		}
		return n
	}
	switch fields[0] {
	case "pod":
		s.pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(number("grace")))
	case "lists":
		s.runtime.SetLists(lifecycletest.Lists{Poll: span("every")})
		s.options.StopTimeoutSlack = span("every") + 2*time.Second
	case "main", "sidecar":
		c := v1.Container{Name: fields[1]}
		if s.hooks[c.Name] = span("hook"); s.hooks[c.Name] > 0 {
			c.Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"hook"}}}}
		}
		_, isStubborn := value("stubborn")
		_, isEarly := value("early")
		_, s.delayed[c.Name] = value("starts")
		s.scripts[c.Name] = lifecycletest.Script{
			ExitAfterTerm: span("exits"), IgnoreTerm: isStubborn, FailStops: number("fails"), HangStops: number("hangs"), StopReturnsEarly: isEarly, StartTakes: span("starts"), StartIgnoresContext: true,
		}
		if fields[0] == "main" {
			s.pod.Spec.Containers = append(s.pod.Spec.Containers, c)
			return
		}
		c.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
		s.pod.Spec.InitContainers = append(s.pod.Spec.InitContainers, c)
	default:
		require.Fail(t, "unknown line", "%v", fields)
	}
}

// begin starts a container, unless a start call does.
func (s *script) begin(name string) {
	if !s.delayed[name] {
		s.runtime.Start(s.pod, name, name, s.scripts[name])
	}
}

// Run runs a hook, which ends with its context.
func (s *script) Run(ctx context.Context, _ string, _ *v1.Pod, c *v1.Container, _ *v1.LifecycleHandler) (string, error) {
	timer := time.NewTimer(s.hooks[c.Name])
	defer timer.Stop()
	select {
	case <-timer.C:
		return "", nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// call makes one call of the script.
func (s *script) call(t *testing.T, fields []string) {
	ctx := context.WithoutCancel(t.Context())
	switch fields[0] {
	case "terminate":
		s.Terminate(s.record.Context(ctx), s.pod, lifecycle.Request{})
	case "shorten":
		var seconds int64
		_, _ = fmt.Sscan(fields[1], &seconds)
		if termination, found := s.Termination(s.pod); found {
			s.Shorten(termination, seconds)
		}
	case "kill":
		_, _ = s.KillContainer(s.record.Context(ctx), s.pod, lifecycle.Container{Name: fields[1], ID: fields[1]}, lifecycle.ContainerRequest{})
	case "exit":
		s.runtime.Exit(fields[1])
	case "start":
		_ = s.Start(ctx, s.pod, fields[1], func(ctx context.Context) error {
			return s.runtime.StartContainer(ctx, s.pod, fields[1], fields[1]+"-2", s.scripts[fields[1]])
		})
	default:
		t.Errorf("unknown call %v", fields)
	}
}

// scriptOrder is the order of facts at the same time: calls, returns and ends, events, the next calls,
// the log.
var scriptOrder = []*regexp.Regexp{
	regexp.MustCompile(`Terminate\(|Shorten\(|KillContainer\([^)]*\)$|Start\(\w+\)$|being started`),
	regexp.MustCompile(`of \S+ returns: |hook returns|is cancelled|has ended`),
	regexp.MustCompile(`event: `),
	regexp.MustCompile(`hook of|stop\(\d+\)`),
	regexp.MustCompile(`log: `),
}

// story returns what happened. Facts at the same time have a fixed order.
func (s *script) story() string {
	lines := s.record.Lines()
	for _, exit := range s.runtime.Exits() {
		lines = append(lines, judge.Line{Moment: judge.Moment{At: exit.At}, Text: fmt.Sprintf("%s has ended by %s", exit.ID, exit.By)})
	}
	lines = slices.DeleteFunc(lines, func(l judge.Line) bool {
		return strings.Contains(l.Text, "Running") || strings.Contains(l.Text, "deadline is")
	})
	for i, l := range lines { // a call that returns at once is one line
		if call, after, isReturn := strings.Cut(l.Text, " of "); isReturn {
			took, answer, _ := strings.Cut(after, " returns: ")
			if took == l.At.Sub(s.began).Round(time.Millisecond).String() {
				lines[i].Text = call + " returns at once: " + answer
				lines[slices.IndexFunc(lines, func(other judge.Line) bool { return other.At.Equal(l.At) && other.Text == call })].Text = ""
			}
		}
	}
	// Omit the return of a call whose container has ended.
	isImplied := func(l judge.Line) bool {
		name, _, isStop := strings.Cut(l.Text, ": stop(")
		return isStop && strings.Contains(l.Text, " of ") && slices.ContainsFunc(lines, func(other judge.Line) bool {
			return other.At.Equal(l.At) && strings.HasPrefix(other.Text, name+" has ended")
		})
	}
	lines = slices.DeleteFunc(slices.Clone(lines), isImplied)
	lines = slices.DeleteFunc(lines, func(l judge.Line) bool { return l.Text == "" || l.At.Sub(s.began) >= time.Hour })
	place := func(text string) int {
		return slices.IndexFunc(append(slices.Clone(scriptOrder), regexp.MustCompile("")), func(r *regexp.Regexp) bool { return r.MatchString(text) })
	}
	var story []string
	slices.SortStableFunc(lines, func(a, b judge.Line) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		if c := place(a.Text) - place(b.Text); c != 0 {
			return c
		}
		return strings.Compare(a.Text, b.Text)
	})
	for _, l := range lines {
		story = append(story, fmt.Sprintf("%-6v %s", l.At.Sub(s.began).Round(time.Millisecond), strings.TrimPrefix(strings.TrimSpace(l.Text), "pod: ")))
	}
	return strings.Join(story, "\n") + "\n"
}
