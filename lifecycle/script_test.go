//go:build go1.25

package lifecycle_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// TestScripts plays the scenarios of testdata/scripts/*.txt. The comment of each says what must come out. Each must give
// exactly the lines after its "----", and package judge checks that no promise of package lifecycle was broken.
//
// First come the pod, its containers and the runtime, one per line. D is a duration, N a number (below 0: for ever).
//
//	pod OPTIONS
//	    grace=N             the grace period of the spec in seconds; without it the spec has none
//	    together            the containers stop as a unit: TerminatorOptions.Pods instead of Runtime
//	    hooks-at-turn       TerminatorOptions.HooksAtTurn
//	    slack=D             StopTimeoutSlack, 5 s without it
//	    gives-up=D          GiveUpAfter, 10 s without it
//	    recorder-hangs      each call of the EventRecorder hangs
//	    watcher-hangs       each call of the ExitWatcher hangs
//	main|sidecar|init|ephemeral|stray NAME OPTIONS   a container; a stray one is not in the spec
//	    hook=D              its preStop command takes D
//	    sleep=N             its preStop hook sleeps for N seconds
//	    post=D              its postStart command takes D
//	    hook-fails          its command fails, also if it is cut
//	    returns-late=D      its command returns D after its context has ended
//	    hook-done           an earlier agent has run its preStop hook
//	    exits=D             it exits D after the stop signal; at once without it
//	    stubborn            it ignores the stop signal
//	    dies=D              it exits by itself, D after its start
//	    hangs=N fails=N     the first N calls of StopContainer hang; the next N fail
//	    early late=D        StopContainer returns at once, or D after the exit
//	    absent              it does not run at the beginning
//	    starts=D            it does not run at the beginning, and a start call takes D
//	    polite              a start call ends with its context; without it, it ignores the context
//	lists OPTIONS           how the runtime lists containers; at once without options
//	    every=D             it polls: a list waits for the next multiple of D
//	    fail hang           each list fails, or hangs
//	    stale               a list also has containers that have ended
//	    lacks=ID            a list lacks this container
//	away D D                from the first time to the second each call of the runtime fails
//
// Containers without absent or starts run from the beginning, and their IDs are their names. Then come the calls, each after the
// time at which it is made. A call does not wait for earlier ones to return.
//
//	D terminate [grace=N] [once] [only=NAMES] | wait D | shorten N | forget | close
//	D kill NAME [grace=N] [once] [timeout=D] | start NAME [as=ID] [fails] | poststart NAME [timeout=D]
//	D phases | may-restart NAME                print what the termination says
//	D run NAME [as=ID] | exit ID | lists ...   the container runs or exits without a call of the terminator; the lists change
//
// The calls are those of package lifecycle: kill is KillContainer, may-restart is ShouldRestart, and wait is Termination.Wait for
// at most D. once is OneAttempt, only is Request.Containers, and timeout is that of the call's context. Without as=ID, the
// container of a start call has the ID NAME-2. In the output, stop(N) is a StopContainer call with a timeout of N seconds.
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
	scripts map[string]lifecycletest.Script // how each container behaves, by name
	hooks   map[string]scriptLine           // the line of each container, by name, for its hooks
	sleeps  lifecycle.HandlerRunner         // runs the sleep hooks
	options lifecycle.TerminatorOptions
	hangs   hangingObserver // the recorder or the watcher that hangs

	mu    sync.Mutex   // guards notes
	notes []judge.Line // lines of the story that the record lacks, such as the returns of Wait
}

// playScript plays a script, and returns what happened, one fact per line. A line of the script that begins with a time
// is a call, made at that time; all other lines describe the pod and the runtime before the first call.
func playScript(t *testing.T, text string) string {
	t.Helper()
	s := &script{
		began: time.Now(), record: judge.NewRecord(), runtime: lifecycletest.NewRuntime(),
		pod:     &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "pod"}},
		scripts: map[string]lifecycletest.Script{}, hooks: map[string]scriptLine{},
		sleeps: lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{}), hangs: make(hangingObserver),
	}
	s.options = lifecycle.TerminatorOptions{Runtime: s.runtime, Exits: s.runtime, Hooks: s, GiveUpAfter: 10 * time.Second}
	var calls []scriptLine
	for line := range strings.Lines(text) {
		line := scriptLine{T: t, fields: strings.Fields(line)}
		if _, err := time.ParseDuration(line.fields[0]); err == nil {
			calls = append(calls, line)
		} else {
			s.prepare(line)
		}
	}
	var err error
	s.Terminator, err = s.record.NewTerminator(s.options)
	require.NoError(t, err)
	for _, call := range calls {
		at, _ := time.ParseDuration(call.fields[0])
		<-times.After(s.began.Add(at))
		go s.call(scriptLine{T: t, fields: call.fields[1:]})
		synctest.Wait()
	}
	<-time.After(time.Hour) // longer than any scenario takes after its last call
	brokenPromises := judge.Terminations(s.record)
	story := s.story()
	require.Empty(t, brokenPromises, story)
	s.runtime.Release()
	close(s.hangs)
	require.NoError(t, s.Close(t.Context()))
	if _, found := s.Termination(s.pod); !found && !strings.Contains(text, "close") { // Close leaves containers that may run
		require.Zero(t, s.Pods(), "a pod without a termination is kept")
	}
	return story
}

// scriptLine is a line of a script. Each of its fields is a word or KEY=VALUE.
type scriptLine struct {
	*testing.T

	fields []string
}

// value returns the VALUE of the field KEY=VALUE; "" if key is a word of the line. found is false if the line
// has neither.
func (l scriptLine) value(key string) (text string, found bool) {
	for _, f := range l.fields {
		if name, text, _ := strings.Cut(f, "="); name == key {
			return text, true
		}
	}
	return "", false
}

// has reports whether the line has a field WORD or WORD=VALUE.
func (l scriptLine) has(word string) bool {
	_, found := l.value(word)
	return found
}

// span returns the duration of a key; 0 if the line lacks the key.
func (l scriptLine) span(key string) (d time.Duration) {
	if text, found := l.value(key); found {
		var err error
		d, err = time.ParseDuration(text)
		require.NoError(l, err, "%v", l.fields)
	}
	return d
}

// number returns the number of a key; nil if the line lacks the key.
func (l scriptLine) number(key string) *int64 {
	text, found := l.value(key)
	if !found {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(l, err, "%v", l.fields)
	return &n
}

// prepare applies a line about the pod, a container or the runtime.
func (s *script) prepare(l scriptLine) {
	switch l.fields[0] {
	case "pod":
		s.pod.Spec.TerminationGracePeriodSeconds = l.number("grace")
		s.options.HooksAtTurn, s.options.StopTimeoutSlack = l.has("hooks-at-turn"), l.span("slack")
		if l.has("together") {
			s.options.Runtime, s.options.Pods = nil, wholePod{s.runtime}
		}
		if l.has("gives-up") {
			s.options.GiveUpAfter = l.span("gives-up")
		}
		if l.has("recorder-hangs") {
			s.options.Events = s.hangs
		}
		if l.has("watcher-hangs") {
			s.options.Exits = s.hangs
		}
	case "lists":
		s.setLists(l)
		if l.has("every") {
			s.options.StopTimeoutSlack = l.span("every") + 2*time.Second
		}
	case "away":
		from, _ := time.ParseDuration(l.fields[1])
		to, err := time.ParseDuration(l.fields[2])
		require.NoError(l, err)
		s.runtime.Away(from, to)
	default:
		s.addContainer(l)
	}
}

// setLists changes how the runtime answers Running from now on: late, never, with an error, or with containers that
// have ended.
func (s *script) setLists(l scriptLine) {
	lists := lifecycletest.Lists{Poll: l.span("every"), Hang: l.has("hang"), HasEnded: l.has("stale")}
	if name, found := l.value("lacks"); found {
		lists.Lacks = []string{name}
	}
	if l.has("fail") {
		lists.Err = errors.New("the script fails this list")
	}
	s.runtime.SetLists(lists)
}

// addContainer adds a container to the pod, and starts it unless it is absent or a call starts it.
func (s *script) addContainer(l scriptLine) {
	c := v1.Container{Name: l.fields[1], Lifecycle: &v1.Lifecycle{}}
	exec := &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"hook"}}}
	if l.has("hook") {
		c.Lifecycle.PreStop = exec
	}
	if sleep := l.number("sleep"); sleep != nil {
		c.Lifecycle.PreStop = sleepHandler(*sleep)
	}
	if l.has("post") {
		c.Lifecycle.PostStart = exec.DeepCopy()
	}
	times := func(key string) int { return int(*cmp.Or(l.number(key), new(int64))) }
	s.hooks[c.Name] = l
	s.scripts[c.Name] = lifecycletest.Script{
		ExitAfterTerm: l.span("exits"), ExitAfter: l.span("dies"), IgnoreTerm: l.has("stubborn"), FailStops: times("fails"), HangStops: times("hangs"),
		StopReturnsEarly: l.has("early"), StopReturnsLate: l.span("late"), StartTakes: l.span("starts"), StartIgnoresContext: !l.has("polite"),
	}
	switch spec := &s.pod.Spec; l.fields[0] {
	case "main":
		spec.Containers = append(spec.Containers, c)
	case "sidecar":
		c.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
		spec.InitContainers = append(spec.InitContainers, c)
	case "init":
		spec.InitContainers = append(spec.InitContainers, c)
	case "ephemeral":
		spec.EphemeralContainers = append(spec.EphemeralContainers, v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: c.Name}})
	case "stray": // not in the spec
	default:
		require.Fail(l, "unknown line", "%v", l.fields)
	}
	if !l.has("absent") && !l.has("starts") {
		s.runtime.Start(s.pod, c.Name, c.Name, s.scripts[c.Name])
	}
}

// Run runs a hook as the line of its container says. A command returns after its scripted time. If its context ends earlier,
// it returns then, or later by the time of returns-late.
func (s *script) Run(ctx context.Context, id string, pod *v1.Pod, c *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	if handler.Sleep != nil {
		return s.sleeps.Run(ctx, id, pod, c, handler)
	}
	l := s.hooks[c.Name]
	takes := l.span("hook")
	if handler == c.Lifecycle.PostStart {
		takes = l.span("post")
	}
	err := times.Sleep(ctx, takes)
	if err != nil {
		<-times.After(time.Now().Add(l.span("returns-late")))
	}
	if l.has("hook-fails") {
		err = errors.New("exit status 1")
	}
	return "", err
}

// note adds a line to the story.
func (s *script) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, judge.Line{Moment: judge.Moment{At: time.Now()}, Text: fmt.Sprintf(format, args...)})
}

// noteReturn adds a line about a call that has returned.
func (s *script) noteReturn(call string, err error) {
	if err == nil {
		s.note("%s returns", call)
		return
	}
	s.note("%s returns: %s", call, strings.ReplaceAll(err.Error(), "\n", "; "))
}

// container returns the container that a call names. Its ID is its name.
func (s *script) container(name string) lifecycle.Container {
	return lifecycle.Container{Name: name, ID: name, PreStopDone: s.hooks[name].has("hook-done")}
}

// call makes one call of the script. The fields of l begin with the name of the call.
func (s *script) call(l scriptLine) {
	ctx := s.record.Context(context.WithoutCancel(l.Context()))
	if l.has("timeout") {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.span("timeout"))
		defer cancel()
	}
	name := "" // the word after the call: the name of a container, a number or a time
	if len(l.fields) > 1 {
		name = l.fields[1]
	}
	id := name
	if text, found := l.value("as"); found {
		id = text
	}
	termination, _ := s.Termination(s.pod)
	switch l.fields[0] {
	case "terminate":
		req := lifecycle.Request{GracePeriodSeconds: l.number("grace"), OneAttempt: l.has("once")}
		if names, found := l.value("only"); found {
			req.Containers = []lifecycle.Container{}
			for _, name := range strings.FieldsFunc(names, func(r rune) bool { return r == ',' }) {
				req.Containers = append(req.Containers, s.container(name))
			}
		}
		s.Terminate(ctx, s.pod, req)
	case "wait":
		timeout, err := time.ParseDuration(name)
		require.NoError(l, err)
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		_, err = termination.Wait(ctx)
		s.noteReturn("Wait", err)
	case "shorten":
		seconds, err := strconv.ParseInt(name, 10, 64)
		require.NoError(l, err)
		if !s.Shorten(termination, seconds) {
			s.note("Shorten has no effect")
		}
	case "kill":
		_, _ = s.KillContainer(ctx, s.pod, s.container(name), lifecycle.ContainerRequest{GracePeriodSeconds: l.number("grace"), OneAttempt: l.has("once")})
	case "exit":
		s.runtime.Exit(id)
	case "run":
		s.note("%s is running", id)
		s.runtime.Start(s.pod, name, id, s.scripts[name])
	case "start":
		_ = s.Start(ctx, s.pod, name, func(ctx context.Context) error {
			if l.has("fails") {
				return errors.New("no such image")
			}
			if id == name {
				id = name + "-2"
			}
			return s.runtime.StartContainer(ctx, s.pod, name, id, s.scripts[name])
		})
	case "poststart":
		s.noteReturn("PostStart("+name+")", s.PostStart(ctx, s.pod, containerNamed(name)))
	case "may-restart":
		may, left := termination.ShouldRestart(name)
		s.note("ShouldRestart(%s): %t, %v left", name, may, left)
	case "phases":
		var phases []string
		for _, c := range termination.Result().Containers {
			phases = append(phases, fmt.Sprintf("%s %s", c.Name, c.Phase))
		}
		s.note("phases: %s", strings.Join(phases, ", "))
	case "forget":
		s.Forget(s.pod)
	case "close":
		require.NoError(l, s.Close(ctx))
	case "lists":
		s.setLists(l)
	default:
		l.Errorf("unknown call %v", l.fields)
	}
}

// scriptOrder is the order of lines of the story that have the same time, so that it does not depend on the order of
// goroutines: calls of the terminator, returns and ends, events, calls of hooks and StopContainer, and the log.
var scriptOrder = []*regexp.Regexp{
	regexp.MustCompile(`Terminate\(|Shorten\(|KillContainer\([^)]*\)$|Start\(\w+\)$|being started`),
	regexp.MustCompile(`of \S+ returns: |hook returns|is cancelled|has ended`),
	regexp.MustCompile(`event: `),
	regexp.MustCompile(`hook of|stop\(\d+\)`),
	regexp.MustCompile(`log: `),
}

// story returns what happened, one line for each fact. It omits the calls of Running, combines a call that returns at once
// with its return, and omits lines that another line implies.
func (s *script) story() string {
	// Collect the lines.
	s.mu.Lock()
	lines := slices.Concat(s.record.Lines(), s.notes)
	s.mu.Unlock()
	for _, exit := range s.runtime.Exits() {
		lines = append(lines, judge.Line{Moment: judge.Moment{At: exit.At}, Text: fmt.Sprintf("%s has ended by %s", exit.ID, exit.By)})
	}
	lines = slices.DeleteFunc(lines, func(l judge.Line) bool {
		return strings.Contains(l.Text, ": Running") || strings.Contains(l.Text, "deadline is")
	})
	// Combine a call and its return at the same time to one line, and empty the other.
	for i, l := range lines {
		if call, after, isReturn := strings.Cut(l.Text, " of "); isReturn {
			took, answer, _ := strings.Cut(after, " returns: ")
			if took == l.At.Sub(s.began).Round(time.Millisecond).String() {
				lines[i].Text = call + " returns at once: " + answer
				lines[slices.IndexFunc(lines, func(other judge.Line) bool { return other.At.Equal(l.At) && other.Text == call })].Text = ""
			}
		}
	}
	// The line that a container has ended implies that its StopContainer call has returned: omit the return.
	isImplied := func(l judge.Line) bool {
		name, _, isStop := strings.Cut(l.Text, ": stop(")
		return isStop && strings.Contains(l.Text, " of ") && slices.ContainsFunc(lines, func(other judge.Line) bool {
			return other.At.Equal(l.At) && strings.HasPrefix(other.Text, name+" has ended")
		})
	}
	lines = slices.DeleteFunc(slices.Clone(lines), isImplied)
	lines = slices.DeleteFunc(lines, func(l judge.Line) bool { return l.Text == "" })
	if s.options.Pods != nil { // one container logs for all, and which one it is differs from run to run
		for i, l := range lines {
			lines[i].Text = regexp.MustCompile(` containerName=\w+ containerID=\w+`).ReplaceAllString(l.Text, "")
		}
	}
	// Sort the lines by time, then by scriptOrder, in which a line that no pattern matches comes last, then by text.
	rank := func(text string) int {
		anything := regexp.MustCompile("")
		return slices.IndexFunc(append(slices.Clone(scriptOrder), anything), func(r *regexp.Regexp) bool { return r.MatchString(text) })
	}
	var story []string
	slices.SortStableFunc(lines, func(a, b judge.Line) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		if c := rank(a.Text) - rank(b.Text); c != 0 {
			return c
		}
		return strings.Compare(a.Text, b.Text)
	})
	for _, l := range lines {
		story = append(story, fmt.Sprintf("%-6v %s", l.At.Sub(s.began).Round(time.Millisecond), strings.TrimPrefix(strings.TrimSpace(l.Text), "pod: ")))
	}
	return strings.Join(story, "\n") + "\n"
}
