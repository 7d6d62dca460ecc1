//go:build linux

package shutdown_test

import (
	"encoding/json"
	"errors"
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
	if a := m.current(); a != nil && stored.Report.Ended.IsZero() && time.Now().Before(m.end) && a.m.ShutdownStatus() == nil {
		m.blame("pods are admitted, and a shutdown is on record that goes on")
	}
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
	if m.cell.fault == failsOnce {
		require.LessOrEqual(m, o.released, undisturbed+m.cell.passing(), "a fault that passes costs what it lasts")
	}
	if m.cell.isTriedAgain() {
		require.Empty(m, o.failures(), "nothing is left of what was tried again")
		require.Equal(m, len(o.stopped), o.told, "final statuses")
	}
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
