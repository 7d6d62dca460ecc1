//go:build linux && go1.25

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

// checkInvariants checks what must hold at any time: no running pod is reported as ended, an
// agent that drains admits no pod, and no lock is closed twice.
func (m *machine) checkInvariants() {
	m.Helper()
	for _, a := range m.agents {
		if a.isGone() {
			continue
		}
		if report, ok := a.m.LastReport(); ok {
			m.checkReport("the last report", report)
		}
		if a.drainsBegun() > 0 && a.m.ShutdownStatus() == nil {
			m.addViolation("pods are admitted in a shutdown")
		}
	}
	m.checkStateFile()
	require.NoError(m, m.host.Err())
	m.mu.Lock()
	defer m.mu.Unlock()
	require.Empty(m, m.violations)
}

// checkStateFile checks the same of the state file, which the next agent would read.
func (m *machine) checkStateFile() {
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
	require.NoError(m, json.Unmarshal(data, &stored), "the state file is complete at any time")
	m.checkReport("the stored report", stored.Report)
	if a := m.currentAgent(); a != nil && stored.Report.Ended.IsZero() && time.Now().Before(m.hostEnd) && a.m.ShutdownStatus() == nil {
		m.addViolation("pods are admitted although the state file has an unfinished shutdown")
	}
	for _, s := range stored.Unacknowledged {
		if s.Ended && m.isRunning(s.Pod.Metadata.Name) {
			m.addViolation("the stored final status of pod %s says that it has ended, but it runs", s.Pod.Metadata.Name)
		}
	}
}

// checkReport checks that each pod is in a report once, and that no running pod has ended by
// the report. what names the report.
func (m *machine) checkReport(what string, report shutdown.Report) {
	seen := map[string]bool{}
	for _, pod := range report.Pods {
		if seen[pod.Name] {
			m.addViolation("%s has pod %s twice", what, pod.Name)
		}
		seen[pod.Name] = true
		if !pod.Ended.IsZero() && m.isRunning(pod.Name) {
			m.addViolation("%s says that pod %s has ended, but it runs", what, pod.Name)
		}
	}
}

// checkOutcome checks what must hold when the host's time is over and the agent has ended.
func (m *machine) checkOutcome(o *outcome) {
	m.Helper()
	require.Zero(m, m.host.Held(), "locks")
	require.Equal(m, m.cell.hasNoLock(), !o.held, "the host is held when the shutdown is announced")
	require.Equal(m, m.cell.leavesLockWithSystemd(), o.hostWentOn, "the host goes on by itself")
	if !o.hostWentOn {
		require.LessOrEqual(m, o.released, m.hostLimit()+releaseLag, "the host is let go in time")
	}
	expected := []string{"db", "etcd", "web"}
	for _, pod := range m.cell.podsNotStopped() {
		expected = slices.DeleteFunc(expected, func(name string) bool { return name == pod })
	}
	require.Subset(m, o.stopped, expected, "pods that are stopped in spite of the fault")
	for _, a := range m.agents {
		require.LessOrEqual(m, a.execs, 1, "runs of the preStop hook in one agent")
	}
	for _, pod := range o.report.Pods {
		if slices.Contains(o.stopped, pod.Name) && m.cell.seesPodsEnd() {
			require.False(m, pod.Ended.IsZero(), "pod %s has ended", pod.Name)
		}
		_, told := m.acknowledged[pod.Name]
		if m.cell.fault != agentIsKilled {
			require.Equal(m, !told, pod.Unflushed, "what the report says of the final status of pod %s", pod.Name)
		}
	}
	require.ElementsMatch(m, m.signalled, podNames(o.report), "pods of the report")
	if m.cell.fault == failsOnce {
		require.LessOrEqual(m, o.released, faultlessRelease+m.cell.costOfOneFailure(), "one failure costs no more than the time until the next attempt")
	}
	if m.cell.isTriedAgain() {
		require.Empty(m, o.reportedErrors(), "the failure of a call that succeeds in the end is not reported")
		require.Equal(m, len(o.stopped), o.acknowledged, "final statuses")
	}
	if m.cell.isReported() {
		if o.err != nil {
			o.problems = append(o.problems, o.err.Error())
		}
		require.NotEmpty(m, append(o.reportedErrors(), o.problems...), "the fault is reported")
	}
}

// afterReboot reboots the host and starts an agent. The agent has to report all signalled
// pods, send the final statuses that were not acknowledged, and hold the host again.
func (m *machine) afterReboot(o *outcome) {
	m.Helper()
	m.powerOff()
	m.startAgent(true)
	m.advance(5 * time.Second)
	a := m.currentAgent()
	require.NotNil(m, a)
	require.NoError(m, a.m.ShutdownStatus())
	require.Equal(m, 1, m.host.Held(), "the host is held again")
	if o.drainBegun && !m.cell.losesState() {
		report, ok := a.m.LastReport()
		require.True(m, ok, "a report after the reboot")
		require.ElementsMatch(m, m.signalled, podNames(report), "pods of the report after the reboot")
		if m.cell.seesPodsEnd() && !m.cell.losesReport() {
			require.Equal(m, endTimes(o.report), endTimes(report), "the report after the reboot is the one from before it")
		}
		for _, pod := range m.signalled {
			require.Contains(m, m.acknowledged, pod, "final statuses after the reboot")
		}
	}
	require.NoError(m, a.stopAndWait())
	require.Zero(m, m.host.Held())
	leftovers, err := filepath.Glob(filepath.Join(m.dir, ".tmp-*"))
	require.NoError(m, err)
	require.Empty(m, leftovers, "temporary files")
	m.checkInvariants()
}

// podNames returns the names of the pods of a report.
func podNames(report shutdown.Report) (all []string) {
	for _, pod := range report.Pods {
		all = append(all, pod.Name)
	}
	return all
}

// endTimes returns the end of a shutdown, under "host", and the end, outcome and error of
// each of its pods.
func endTimes(report shutdown.Report) map[string]string {
	all := map[string]string{"host": report.Ended.UTC().String()}
	for _, pod := range report.Pods {
		all[pod.Name] = pod.Ended.UTC().String() + " " + pod.Outcome + pod.Error
	}
	return all
}

// checkGoroutines checks that agents that have ended have left no goroutine of kubegrace. It
// does nothing where goroutines stay until the test is over: those of a killed agent, and
// those in a call that hangs.
func (m *machine) checkGoroutines() {
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

// openFiles returns the names of this process's open files below a folder.
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
