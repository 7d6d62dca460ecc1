//go:build linux

package shutdown_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
)

var errEnded = errors.New("the agent has ended")

// look checks what must be so at any time: nobody says of a pod that it has ended which runs,
// an agent that drains admits no pod, and no lock is given back twice.
func (m *machine) look() {
	m.Helper()
	for _, a := range m.agents {
		if a.isGone() {
			continue
		}
		if report, ok := a.m.LastReport(); ok {
			m.truthful("the last report", report)
		}
		if a.drained() > 0 && a.m.ShutdownStatus() == nil {
			m.blame("pods are admitted in a shutdown")
		}
	}
	m.lookAtDisk()
	require.NoError(m, m.host.Err())
	m.mu.Lock()
	defer m.mu.Unlock()
	require.Empty(m, m.wrong)
}

// lookAtDisk checks the same of what the next agent would find.
func (m *machine) lookAtDisk() {
	m.Helper()
	data, err := os.ReadFile(filepath.Join(m.dir, progressFile))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	require.NoError(m, err)
	var stored struct {
		Report         shutdown.Report
		Unacknowledged []struct {
			Pod   struct{ Metadata struct{ Name string } }
			Ended bool
		}
	}
	require.NoError(m, json.Unmarshal(data, &stored), "it is never torn")
	m.truthful("the stored report", stored.Report)
	for _, s := range stored.Unacknowledged {
		if s.Ended && m.runs(s.Pod.Metadata.Name) {
			m.blame("the stored final status of pod %s says that it has ended, and it runs", s.Pod.Metadata.Name)
		}
	}
}

// truthful checks that each pod is in a report once, and that none has ended there which runs.
func (m *machine) truthful(what string, report shutdown.Report) {
	seen := map[string]bool{}
	for _, pod := range report.Pods {
		if seen[pod.Name] {
			m.blame("%s has pod %s twice", what, pod.Name)
		}
		seen[pod.Name] = true
		if !pod.Ended.IsZero() && m.runs(pod.Name) {
			m.blame("%s says that pod %s has ended, and it runs", what, pod.Name)
		}
	}
}

// outcome is how a shutdown has ended.
type outcome struct {
	limit       time.Duration // H
	held        bool          // the host, when it was announced
	signalled   bool          // the agent learned of it by SIGTERM
	interrupted bool          // by the end of Run's context
	begun       bool          // an agent has begun a drain
	agents      int           // that have run
	released    time.Duration // since the announcement; 0: the host was not held
	byItself    bool          // the host went on, because its limit was over
	over        time.Duration // when the last report ends
	stopped     []string      // pods whose container has ended
	killed      []string      // by SIGKILL
	told        int           // final statuses
	report      shutdown.Report
	said        []string // what went wrong, by the state of the lock, the pods' events and outcomes
	err         error    // Run's
}

// outcome looks at how the shutdown stands when the host's time is over.
func (m *machine) outcome(held, signalled bool, announced time.Time) *outcome {
	m.Helper()
	o := &outcome{limit: m.limit(), interrupted: m.cell.fault == agentEnds, held: held, signalled: signalled, agents: len(m.agents)}
	if released, ok := m.host.Released(); ok && held {
		o.released = released.Sub(announced)
	}
	for _, a := range m.agents {
		o.begun = o.begun || a.drained() > 0
	}
	for _, exit := range m.rt.Exits() {
		o.stopped = append(o.stopped, exit.ID)
		if exit.By == lifecycletest.ByKill {
			o.killed = append(o.killed, exit.ID)
		}
	}
	m.mu.Lock()
	o.told = len(m.told)
	m.mu.Unlock()
	last := m.agents[len(m.agents)-1]
	if err := last.m.Inhibitor().Err; err != nil {
		o.said = append(o.said, err.Error())
	}
	for _, event := range m.events.All() {
		if event.Type == v1.EventTypeWarning {
			o.said = append(o.said, event.Reason)
		}
	}
	o.report, _ = last.m.LastReport()
	for _, pod := range o.report.Pods {
		if pod.Outcome != string(lifecycle.Graceful) {
			o.said = append(o.said, pod.Outcome)
		}
	}
	o.over = o.report.Ended.Sub(announced)
	return o
}

// String is the cell of the table.
func (o *outcome) String() string {
	if !o.begun {
		return "the agent has ended before the shutdown, the host is not held"
	}
	var parts []string
	switch {
	case o.byItself:
		parts = append(parts, "the host goes on by itself at "+seconds(o.released))
	case o.held:
		parts = append(parts, fmt.Sprintf("released at %s of %d", seconds(o.released), int(o.limit.Seconds())))
	case o.over > 0:
		parts = append(parts, "no lock, over at "+seconds(o.over))
	default:
		parts = append(parts, "no lock")
	}
	stopped := fmt.Sprintf("%d of 3 stopped", len(o.stopped))
	if len(o.killed) > 0 {
		stopped += fmt.Sprintf(" (%d by force)", len(o.killed))
	}
	parts = append(parts, stopped)
	if o.told != len(o.stopped) {
		parts = append(parts, fmt.Sprintf("%d of their statuses told", o.told))
	}
	if o.signalled {
		parts = append(parts, "learned by SIGTERM")
	}
	if len(o.failures()) > 0 && !o.interrupted { // what a call says that is cancelled depends on chance
		parts = append(parts, "named in the report")
	}
	if o.err != nil {
		parts = append(parts, "named by Run")
	}
	if o.agents > 1 {
		parts = append(parts, fmt.Sprintf("%d agents", o.agents))
	}
	return strings.Join(parts, "; ")
}

// failures are what the report says went wrong.
func (o *outcome) failures() []string {
	all := slices.Clone(o.report.Errors)
	for _, pod := range o.report.Pods {
		if pod.Error != "" {
			all = append(all, pod.Error)
		}
	}
	return all
}

func seconds(d time.Duration) string {
	return fmt.Sprint(d.Round(10*time.Millisecond).Seconds(), " s")
}

// check checks what must be so when the host's time is over and the agent has ended.
func (m *machine) check(o *outcome) {
	m.Helper()
	require.Zero(m, m.host.Held(), "locks")
	require.Equal(m, m.cell.lockless(), !o.held, "the host is held when the shutdown is announced")
	require.Equal(m, m.cell.unadoptable(), o.byItself, "the host goes on by itself")
	if !o.byItself {
		require.LessOrEqual(m, o.released, m.limit()+releaseLag, "the host is let go in time")
	}
	expected := []string{"db", "etcd", "web"}
	for _, pod := range m.cell.unstoppable() {
		expected = slices.DeleteFunc(expected, func(name string) bool { return name == pod })
	}
	require.Subset(m, o.stopped, expected, "what could be stopped was")
	for _, a := range m.agents {
		require.LessOrEqual(m, a.execs, 1, "runs of the preStop hook in one agent")
	}
	for _, pod := range o.report.Pods {
		if slices.Contains(o.stopped, pod.Name) && m.cell.isFollowed() {
			require.False(m, pod.Ended.IsZero(), "pod %s has ended", pod.Name)
		}
		_, told := m.told[pod.Name]
		if m.cell.fault != agentIsKilled {
			require.Equal(m, !told, pod.Unflushed, "what the report says of the final status of pod %s", pod.Name)
		}
	}
	require.ElementsMatch(m, m.signalled, names(o.report), "pods of the report")
	if m.cell.isSaid() {
		if o.err != nil {
			o.said = append(o.said, o.err.Error())
		}
		require.NotEmpty(m, append(o.failures(), o.said...), "what went wrong is said")
	}
}

// afterReboot starts an agent after the host has gone down and come back: it knows of all pods
// that were signalled, tells what was not told before, and begins anew.
func (m *machine) afterReboot(o *outcome) {
	m.Helper()
	m.switchOff()
	m.start(true)
	m.pass(5 * time.Second)
	a := m.current()
	require.NotNil(m, a)
	require.NoError(m, a.m.ShutdownStatus())
	require.Equal(m, 1, m.host.Held(), "the host is held again")
	if o.begun && !m.cell.forgets() {
		report, ok := a.m.LastReport()
		require.True(m, ok, "a report after the reboot")
		require.ElementsMatch(m, m.signalled, names(report), "pods of the report after the reboot")
		if m.cell.isFollowed() && !m.cell.losesTheEnd() {
			require.Equal(m, ends(o.report), ends(report), "the report after the reboot is that from before")
		}
		for _, pod := range m.signalled {
			require.Contains(m, m.told, pod, "final statuses after the reboot")
		}
	}
	require.NoError(m, a.finish())
	require.Zero(m, m.host.Held())
	leftovers, err := filepath.Glob(filepath.Join(m.dir, ".tmp-*"))
	require.NoError(m, err)
	require.Empty(m, leftovers, "temporary files")
	m.look()
}

// names are the names of the pods of a report.
func names(report shutdown.Report) (all []string) {
	for _, pod := range report.Pods {
		all = append(all, pod.Name)
	}
	return all
}

// ends is when the host was let go, and when each pod has ended, by a report.
func ends(report shutdown.Report) map[string]string {
	all := map[string]string{"host": report.Ended.UTC().String()}
	for _, pod := range report.Pods {
		all[pod.Name] = pod.Ended.UTC().String() + " " + pod.Outcome + pod.Error
	}
	return all
}

// leavesNothing checks that no goroutine of ours is left of agents that have ended. Those of one
// that was killed, or in which something hangs, are left until the test is over.
func (m *machine) leavesNothing() {
	m.Helper()
	if m.cell.fault == hangs || m.cell.fault == agentIsKilled || m.cell.step == atResume {
		return
	}
	synctest.Wait()
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		for _, owner := range []string{"shutdown.", "shutdown/internal/", "lifecycle."} {
			require.NotContains(m, stack, "created by github.com/kubegrace/kubegrace/"+owner, "a goroutine that is left")
		}
	}
}

// lockless tells whether no lock is held when the shutdown is announced.
func (c cell) lockless() bool {
	switch c.step {
	case atConnect, atDelay, atInhibit:
		return c.fault == hangs || c.fault == failsForEver || c.fault == panics || c.fault == agentEnds
	case atEvent:
		return c.fault == panics
	default:
		return false
	}
}

// victim is the number of the agent that meets the fault first, and that is killed by it.
func (c cell) victim() int {
	if c.step == atResume {
		return 2
	}
	return 1
}

// unadoptable tells whether the host holds itself by the copy of a lock that no agent comes to
// adopt, because it cannot ask the host.
func (c cell) unadoptable() bool {
	return c.step == atResume && (c.fault == hangs || c.fault == failsForEver || c.fault == panics)
}

// unstoppable are the pods that the fault keeps from being stopped.
func (c cell) unstoppable() []string {
	switch {
	case c.fault == agentEnds: // who has ended stops nobody
		return []string{"db", "etcd", "web"}
	case c.step == atPlan && (c.fault == hangs || c.fault == failsForEver || c.fault == panics): // nobody knows them
		return []string{"db", "etcd", "web"}
	case c.step == atKill && (c.fault == hangs || c.fault == failsForEver || c.fault == panics):
		return []string{"web"}
	case c.step == atStop && (c.fault == failsForEver || c.fault == panics):
		return []string{"web"}
	default:
		return nil
	}
}

// isSaid tells whether the fault is one that somebody has to be told of.
func (c cell) isSaid() bool {
	switch {
	case c.fault != hangs && c.fault != failsForEver && c.fault != panics:
		return false
	case c.step == atPlan && c.fault == failsForEver: // an empty list is no failure
		return false
	case c.step == atEvent && c.fault != panics: // nobody knows of an event that does not come
		return false
	case c == cell{atReport, panics}: // the report was complete before; the log says it
		return false
	default:
		return true
	}
}

// isFollowed tells whether an agent sees each pod to its end.
func (c cell) isFollowed() bool {
	return c.fault != agentEnds && c.fault != agentIsKilled && c.step != atKill && c.step != atResume
}

// forgets tells whether the disk fails, so that the next agent knows nothing.
func (c cell) forgets() bool {
	return c.step == atStore && (c.fault == hangs || c.fault == failsForEver)
}

// losesTheEnd tells whether the disk fails when the report is written.
func (c cell) losesTheEnd() bool {
	return c.step == atReport && (c.fault == hangs || c.fault == failsForEver)
}

// openFiles are the open files of this process below a folder.
func openFiles(t *testing.T, dir string) (names []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, link := range links {
		if name, err := os.Readlink(link); err == nil && strings.HasPrefix(name, dir) {
			names = append(names, name)
		}
	}
	return names
}
