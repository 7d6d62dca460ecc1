package view

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// began is when all shutdowns of these tests begin.
var began = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// snapshotAt returns a snapshot of a shutdown that began some time ago.
func snapshotAt(ago time.Duration, pods ...Pod) Snapshot {
	return Snapshot{Now: began.Add(ago), Began: began, Allowed: 18 * time.Second, Pods: pods}
}

// endingPod returns a pod that was told to stop within 10 s.
func endingPod(name string, containers ...Container) Pod {
	return Pod{Name: name, Priority: 10, State: Ending, Granted: 10, Deadline: began.Add(10 * time.Second), Containers: containers}
}

// gonePod returns a pod whose stop has taken 3 s.
func gonePod(name string, containers ...Container) Pod {
	return Pod{Name: name, Priority: 10, State: Gone, Granted: 10, Took: 3 * time.Second, Containers: containers}
}

// containerIn returns a container whose stop is in a phase.
func containerIn(name string, phase lifecycle.Phase) Container {
	return Container{ContainerResult: lifecycle.ContainerResult{Name: name, Phase: phase}, Signal: "SIGTERM", HookText: "sleep of 2 s"}
}

// endedContainer returns a container that has taken 2 s to end after its stop signal.
func endedContainer(outcome lifecycle.Outcome) Container {
	c := containerIn("app", lifecycle.PhaseEnded)
	c.Outcome, c.Stopping = outcome, 2*time.Second
	return c
}

// endedContainerWithHook returns a container that has ended in time.
func endedContainerWithHook(hook lifecycle.HookResult) Container {
	c := endedContainer(lifecycle.Graceful)
	c.Hook = hook
	return c
}

func TestChangeLinesOncePerChange(t *testing.T) {
	var out bytes.Buffer
	v := New(&out, nil)
	idle := Snapshot{Now: began, Pods: []Pod{{Name: "shop/web", State: Running}}}
	v.Show(idle)
	v.Show(idle)
	v.Show(snapshotAt(0, Pod{Name: "shop/web", State: Running}))
	v.Show(snapshotAt(time.Second, endingPod("shop/web", containerIn("app", lifecycle.PhaseHook))))
	v.Show(snapshotAt(2*time.Second, endingPod("shop/web", containerIn("app", lifecycle.PhaseHook))))
	v.Show(snapshotAt(3*time.Second, endingPod("shop/web", containerIn("app", lifecycle.PhaseStopping))))
	v.Show(snapshotAt(4*time.Second, gonePod("shop/web", endedContainer(lifecycle.Graceful))))
	require.Equal(t, `shop/web                 runs
Shutting down 1 pod in 1 bucket, the lowest priority first; it may take up to 18.0 s.
   1.0 s  shop/web                 runs its preStop hook: sleep of 2 s (9.0 s left)
   3.0 s  shop/web                 got SIGTERM, is ending (7.0 s left)
   4.0 s  shop/web                 gone after 3.0 s: stopped in time
`, out.String())
}

func TestChangeLinesNameTheContainersOfAPodWithASidecar(t *testing.T) {
	var out bytes.Buffer
	v := New(&out, nil)
	v.Show(snapshotAt(time.Second, endingPod("shop/cart", containerIn("proxy", lifecycle.PhaseWaiting), containerIn("app", lifecycle.PhaseStopping))))
	v.Show(snapshotAt(2*time.Second, endingPod("shop/cart", containerIn("proxy", lifecycle.PhaseStopping), endedContainer(lifecycle.Graceful))))
	require.Equal(t, `Shutting down 1 pod in 1 bucket, the lowest priority first; it may take up to 18.0 s.
   1.0 s  shop/cart proxy          waits, a sidecar stops last (9.0 s left)
   1.0 s  shop/cart app            got SIGTERM, is ending (9.0 s left)
   2.0 s  shop/cart proxy          got SIGTERM, is ending (8.0 s left)
   2.0 s  shop/cart app            stopped in time
`, out.String())
}

func TestSummaryOfEveryOutcome(t *testing.T) {
	for name, test := range map[string]struct {
		pod           Pod
		row, sentence string
	}{
		"in time":                       {gonePod("a", endedContainer(lifecycle.Graceful)), "stopped in time", ""},
		"killed":                        {gonePod("a", endedContainer(lifecycle.GraceExceeded)), "killed, its time was up", "a: container app did not end on SIGTERM and was killed 2.0 s later, when the 10 s of its pod were over."},
		"forced":                        {gonePod("a", failedContainer(lifecycle.Forced)), "killed, its stop had failed", "a: container app was killed, because its stop failed: broken"},
		"stuck":                         {gonePod("a", failedContainer(lifecycle.RuntimeStuck)), "may still run: the container runtime failed", "a: container app may still run, the container runtime could not stop it: broken"},
		"ended before":                  {gonePod("a", endedContainer(lifecycle.NotFound)), "had ended before", ""},
		"left":                          {gonePod("a", endedContainer(lifecycle.LeftRunning)), "left running", "a: container app was left running, because the agent stopped."},
		"hook":                          {gonePod("a", endedContainerWithHook(lifecycle.HookResult{Outcome: lifecycle.HookCompleted, Took: 2 * time.Second})), "stopped in time, after a preStop hook of 2.0 s", ""},
		"hook failed":                   {gonePod("a", endedContainerWithHook(lifecycle.HookResult{Outcome: lifecycle.HookFailed, Err: errors.New("broken")})), "stopped in time, its preStop hook failed", "a: container app had a preStop hook (sleep of 2 s) that failed: broken"},
		"hook cut":                      {gonePod("a", endedContainerWithHook(lifecycle.HookResult{Outcome: lifecycle.HookCut, Cause: lifecycle.GraceSpent, Took: time.Second})), "stopped in time, its preStop hook was cut off", "a: container app had a preStop hook (sleep of 2 s) that was cut off after 1.0 s."},
		"hook ended with its container": {gonePod("a", endedContainerWithHook(lifecycle.HookResult{Outcome: lifecycle.HookCut, Cause: lifecycle.ContainerExited})), "stopped in time", ""},
		"hook abandoned":                {gonePod("a", endedContainerWithHook(lifecycle.HookResult{Outcome: lifecycle.HookAbandoned, Took: time.Second})), "its preStop hook was cut off", "was cut off after 1.0 s."},
		"hook left out":                 {gonePod("a", endedContainerWithHook(lifecycle.HookResult{Outcome: lifecycle.HookSkipped})), "no time for its preStop hook", ""},
		"worst counts":                  {gonePod("a", endedContainer(lifecycle.Graceful), endedContainer(lifecycle.GraceExceeded)), "killed, its time was up", "was killed"},
		"problem":                       {podWithProblem(gonePod("a", endedContainer(lifecycle.Graceful))), "stopped in time, but with an error", "a: the sandbox is stuck"},
		"problem once":                  {podWithProblem(gonePod("a", failedContainer(lifecycle.RuntimeStuck))), "may still run: the container runtime failed\n\n", "could not stop it: broken\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			New(&out, nil).Finish(snapshotAt(5*time.Second, test.pod))
			require.Contains(t, out.String(), test.row)
			require.Contains(t, out.String(), test.sentence)
		})
	}
}

// podWithProblem returns a pod whose sandbox could not be removed.
func podWithProblem(p Pod) Pod {
	p.Problem = "the sandbox is stuck"
	return p
}

// failedContainer returns a container whose stop has failed.
func failedContainer(outcome lifecycle.Outcome) Container {
	c := endedContainer(outcome)
	c.Err = errors.New("broken")
	return c
}

func TestStopTextNamesTheSidecarIfItStoppedInTime(t *testing.T) {
	sidecar := endedContainer(lifecycle.Graceful)
	sidecar.Sidecar = true
	require.Equal(t, "stopped in time, the sidecar last", gonePod("a", sidecar, endedContainer(lifecycle.Graceful)).stopText())
	require.Equal(t, "killed, its time was up", gonePod("a", sidecar, endedContainer(lifecycle.GraceExceeded)).stopText())
}

func TestSummary(t *testing.T) {
	var out bytes.Buffer
	New(&out, nil).Finish(snapshotAt(5*time.Second, gonePod("batch/report", endedContainer(lifecycle.Graceful)), gonePod("batch/stubborn", endedContainer(lifecycle.GraceExceeded))))
	_, summary, _ := strings.Cut(out.String(), "\n\n")
	require.Equal(t, ` POD             PRIORITY  BUCKET  GRANTED   TOOK  OUTCOME
---------------------------------------------------------------------------
 batch/report          10      0+     10 s  3.0 s  stopped in time
 batch/stubborn        10      0+     10 s  3.0 s  killed, its time was up

The shutdown took 5.0 s; it was allowed 18.0 s.
1 of 2 pods stopped in time.
batch/stubborn: container app did not end on SIGTERM and was killed 2.0 s later, when the 10 s of its pod were over.

Pods stop in buckets, the lowest priority first: "1000+" is from 1000 up to the next bucket. A pod
first runs its preStop hook, if it has one, then gets a stop signal (SIGTERM); what still runs at
the end of its time is killed. Granted is the time that a pod had to stop, took the time that it
needed.
`, summary)
}

func TestSummaryOfACancelledShutdown(t *testing.T) {
	var out bytes.Buffer
	s := snapshotAt(5*time.Second, Pod{Name: "a", State: Running})
	s.Cancelled = true
	New(&out, nil).Finish(s)
	require.Contains(t, out.String(), "still runs, the shutdown was called off")
	require.Contains(t, out.String(), "The shutdown was called off after 5.0 s.")
}

func TestSummaryOfAnAbandonedShutdown(t *testing.T) {
	var out bytes.Buffer
	s := snapshotAt(5*time.Second, gonePod("a", endedContainer(lifecycle.LeftRunning)))
	s.Abandoned = true
	New(&out, nil).Finish(s)
	require.Contains(t, out.String(), "The agent left the shutdown after 5.0 s. Pods that had not stopped by then run on.")
}

func TestSummaryFitsTheTerminal(t *testing.T) {
	v, screen := newOnScreen(75, 24)
	v.Finish(snapshotAt(5*time.Second, gonePod("kube-system/network", endedContainerWithHook(lifecycle.HookResult{Outcome: lifecycle.HookCompleted}))))
	for _, line := range screen.lines {
		require.Less(t, text.StringWidth(line), 75, line)
	}
	require.Contains(t, strings.Join(screen.lines, "\n"), "hook of")
}

func TestLogLinesStayWhole(t *testing.T) {
	var out bytes.Buffer
	v := New(&out, nil)
	for _, part := range []string{"one ", "line\ntwo", " lines\n"} {
		n, err := v.Write([]byte(part))
		require.NoError(t, err)
		require.Equal(t, len(part), n)
	}
	v.Say("said")
	require.Equal(t, "one line\ntwo lines\nsaid\n", out.String())
}

func TestClosedTerminalIsNoFailure(t *testing.T) {
	v := New(closedWriter{}, nil)
	v.Say("lost")
	v.Show(snapshotAt(0))
	_, err := v.Write([]byte("lost too\n"))
	require.NoError(t, err)
}

type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, errors.New("closed") }

// screen is a terminal that understands the escape sequences of liveTable.
type screen struct {
	lines  []string // what is visible after all writes
	writes int      // how many there were
}

var cursorUp = regexp.MustCompile(`^\x1b\[(\d+)A`)

func (s *screen) Write(p []byte) (int, error) {
	s.writes++
	for rest := string(p); rest != ""; {
		if up := cursorUp.FindStringSubmatch(rest); up != nil {
			n, err := strconv.Atoi(up[1])
			if err != nil {
				return 0, err
			}
			s.lines = s.lines[:len(s.lines)-n]
			rest = rest[len(up[0]):]
			continue
		}
		if after, ok := strings.CutPrefix(rest, "\r\x1b[J"); ok {
			rest = after
			continue
		}
		line, after, whole := strings.Cut(rest, "\n")
		if !whole {
			return 0, fmt.Errorf("a part of a line: %q", rest)
		}
		s.lines = append(s.lines, text.StripEscape(line))
		rest = after
	}
	return len(p), nil
}

// newOnScreen returns a view that draws on a screen.
func newOnScreen(width, height int) (*View, *screen) {
	s := &screen{}
	v := New(s, nil)
	v.display = terminal(width, height)
	return v, s
}

// terminal returns a table on a terminal of a size.
func terminal(width, height int) *liveTable {
	return &liveTable{size: func() (int, int, error) { return width, height, nil }}
}

func TestLiveTableRedrawsInPlace(t *testing.T) {
	v, screen := newOnScreen(100, 40)
	v.Say("welcome")
	idle := Snapshot{Pods: []Pod{{Name: "a", State: Running}}}
	v.Show(idle)
	require.Equal(t, []string{"welcome", "1 of 1 pod running."}, screen.lines[:2])
	written := screen.writes
	v.Show(idle)
	require.Equal(t, written, screen.writes, "nothing is drawn while nothing changes")

	v.Show(snapshotAt(time.Second, endingPod("batch/report", containerIn("app", lifecycle.PhaseStopping))))
	first := screen.lines
	require.Equal(t, "welcome", first[0])
	require.Contains(t, strings.Join(first, "\n"), "9.0 s  got SIGTERM, is ending")

	v.Show(snapshotAt(2*time.Second, endingPod("batch/report", containerIn("app", lifecycle.PhaseStopping))))
	require.Len(t, screen.lines, len(first))
	require.Contains(t, strings.Join(screen.lines, "\n"), " 8.0 s  got")

	v.Say("said meanwhile")
	require.Equal(t, []string{"welcome", "said meanwhile"}, screen.lines[:2])
	require.Len(t, screen.lines, len(first)+1)
	_, err := v.Write([]byte("logged\n"))
	require.NoError(t, err)
	require.Equal(t, "logged", screen.lines[2])

	v.Finish(snapshotAt(3*time.Second, gonePod("batch/report", endedContainer(lifecycle.Graceful))))
	require.Equal(t, []string{"welcome", "said meanwhile", "logged", ""}, screen.lines[:4])
	require.Contains(t, screen.lines[4], "OUTCOME", "the summary takes the place of the table")
}

func TestLiveTableFitsTheTerminal(t *testing.T) {
	var pods []Pod
	for i := range 100 {
		pods = append(pods, gonePod(fmt.Sprintf("batch/job-%d", i), endedContainer(lifecycle.Graceful)))
	}
	pods[98] = endingPod("batch/last", containerIn("app", lifecycle.PhaseHook))
	for _, size := range [][2]int{{200, 50}, {80, 24}, {60, 12}} {
		v, screen := newOnScreen(size[0], size[1])
		v.Show(snapshotAt(time.Second, pods...))
		require.LessOrEqual(t, len(screen.lines), max(size[1]-1, 6))
		for _, line := range screen.lines {
			require.Less(t, text.StringWidth(line), size[0])
		}
	}
	all := text.StripEscape(frame(snapshotAt(time.Second, pods...), terminal(80, 24)))
	require.Contains(t, all, "batch/last", "pods that are ending are shown first")
	require.Contains(t, all, "and 82 more")
}

func TestLiveTableOnATerminalOfUnknownSize(t *testing.T) {
	v, screen := newOnScreen(0, 0)
	v.Show(snapshotAt(time.Second, endingPod("a", containerIn("app", ""))))
	require.Contains(t, strings.Join(screen.lines, "\n"), "is about to stop")
}
