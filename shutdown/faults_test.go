//go:build linux && go1.25

package shutdown_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// updateFaults makes TestFaultMatrix and TestStates write their tables instead of comparing them.
var updateFaults = flag.Bool("update", false, "write the tables in testdata from what happens")

const faultsTable = "testdata/faults.md"

// fault is what goes wrong at a step of a shutdown.
type fault string

const (
	isSlow        fault = "slow"
	hangs         fault = "hangs"
	failsOnce     fault = "fails once"
	failsAlways   fault = "fails for ever"
	panics        fault = "panics"
	agentEnds     fault = "context cancelled"
	agentIsKilled fault = "process killed and restarted"
)

func allFaults() []fault {
	return []fault{isSlow, hangs, failsOnce, failsAlways, panics, agentEnds, agentIsKilled}
}

// step is a step of a shutdown at which the manager or the terminator calls other code.
type step string

const (
	atConnect step = "connect"
	atDelay   step = "delay"
	atInhibit step = "inhibit"
	atEvent   step = "event"
	atPublish step = "publish"
	atPolicy  step = "policy"
	atPlan    step = "plan"
	atHold    step = "hold"
	atReady   step = "ready"
	atKill    step = "kill"
	atHook    step = "hook"
	atStop    step = "stop"
	atUnmount step = "unmount"
	atStatus  step = "status"
	atStore   step = "store"
	atReport  step = "report"
	atRelease step = "release"
	atResume  step = "resume"
)

// stepSeam names the functions whose calls have the faults of a step.
type stepSeam struct {
	step step
	seam string
}

func allSteps() []stepSeam {
	return []stepSeam{
		{atConnect, "Source.Connect"},
		{atDelay, "Session.RequestDelay"},
		{atInhibit, "Session.Inhibit"},
		{atEvent, "Session.Events"},
		{atPublish, "Reporter.PublishNode"},
		{atPolicy, "Options.Policy"},
		{atPlan, "Options.Pods, Options.OnPlan"},
		{atHold, "Options.Hold"},
		{atReady, "Reporter.MarkNotReady, of one pod"},
		{atKill, "PodKiller.KillPod, of one pod"},
		{atHook, "the command of a preStop hook"},
		{atStop, "Runtime.StopContainer, of one pod"},
		{atUnmount, "Options.Volumes"},
		{atStatus, "Reporter.FlushPod, of one pod"},
		{atStore, "the writing of the state files"},
		{atReport, "the writing of the report, Options.OnReport"},
		{atRelease, "Options.OnRelease, the closing of the lock"},
		{atResume, "Session.Pending, in an agent that was restarted in the shutdown"},
	}
}

// Each step of a shutdown is combined with each fault. In every case the host is released in
// time, the pods that can be stopped are stopped, and reports and statuses of pods are
// complete and true. The file testdata/faults.md says how the shutdown ends in each case; run
// the test with -update to write it anew.
func TestFaultMatrix(t *testing.T) {
	ends := map[cell]string{}
	for _, s := range allSteps() {
		for _, f := range allFaults() {
			c := cell{s.step, f}
			if why := c.noSuchFault(); why != "" {
				ends[c] = "no such fault: " + why
				continue
			}
			t.Run(string(c.step)+" "+string(c.fault), func(t *testing.T) {
				dir := t.TempDir()
				synctest.Test(t, func(t *testing.T) { ends[c] = newMachine(t, dir, c).shutDown() })
				require.Empty(t, openFiles(t, dir), "files that are open")
			})
		}
	}
	if len(ends) < len(allSteps())*len(allFaults()) {
		return // -run has selected some of the subtests
	}
	table := faultTable(ends)
	if *updateFaults {
		require.NoError(t, os.WriteFile(faultsTable, []byte(table), 0o644))
	}
	t.Log("\n" + table)
	kept, err := os.ReadFile(faultsTable)
	require.NoError(t, err)
	was, is := strings.Split(string(kept), "\n"), strings.Split(table, "\n")
	require.Len(t, is, len(was), "lines of %s; -update writes it anew", faultsTable)
	for i, line := range is {
		require.Equal(t, strings.Split(was[i], " | "), strings.Split(line, " | "), "%s, line %d; -update writes it anew", faultsTable, i+1)
	}
}

const (
	// idleTime is how long an agent has run when the shutdown is announced.
	idleTime = 5 * time.Second
	// checkInterval is the time between two checks of the invariants.
	checkInterval = 500 * time.Millisecond
	// slowness is how much longer a slow call takes.
	slowness = 1500 * time.Millisecond
	// faultLag is the time from a call to its single fault. Whatever else happens at the moment
	// of the call is done before the fault, so that each run of the test ends alike.
	faultLag = 30 * time.Millisecond
	// hostTime is the time that an agent asks of the host, without the margin: 2 s to publish,
	// for each bucket the schedule's time and 4 s beside it, and the containers' floor of 2 s.
	hostTime = (2 + (20 + 4) + (10 + 4) + 2) * time.Second
	// faultlessRelease is when the host is released if nothing goes wrong, since the announcement.
	faultlessRelease = 7 * time.Second
	// holdTime is how much Options.Hold adds to hostTime.
	holdTime = 10 * time.Second
	// releaseLag is half of the release margin: the lock is closed so long after hostTime at the
	// latest.
	releaseLag = 250 * time.Millisecond
)
