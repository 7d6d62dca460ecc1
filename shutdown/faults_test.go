//go:build linux

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

// updateFaults has the table of faults written anew, from what happens.
var updateFaults = flag.Bool("update", false, "write testdata/faults.md from what happens")

const faultsTable = "testdata/faults.md"

// fault is what happens to a step of a shutdown.
type fault string

const (
	isSlow        fault = "slow"
	hangs         fault = "hangs"
	failsOnce     fault = "fails once"
	failsForEver  fault = "fails for ever"
	panics        fault = "panics"
	agentEnds     fault = "context cancelled"
	agentIsKilled fault = "process killed and restarted"
)

func allFaults() []fault {
	return []fault{isSlow, hangs, failsOnce, failsForEver, panics, agentEnds, agentIsKilled}
}

// step is one step of a shutdown, and the code outside of the manager that it depends on.
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

// stepSeam says where the fault of a step is.
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

// Whatever goes wrong in whichever step of a shutdown, the host is let go in time, what can
// be stopped is stopped, and what is said of the pods is complete and true. What becomes of
// the shutdown in each case is kept in testdata/faults.md; run with -update to write it anew.
func TestFaultMatrix(t *testing.T) {
	ends := map[cell]string{}
	for _, s := range allSteps() {
		for _, f := range allFaults() {
			c := cell{s.step, f}
			if why := c.senseless(); why != "" {
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
		return // not all were asked for
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
	// beforehand is how long the agent runs before the shutdown is announced.
	beforehand = 5 * time.Second
	// lookEvery is how often the machine is looked at.
	lookEvery = 500 * time.Millisecond
	// slowness is how long a slow step takes longer than others.
	slowness = 1500 * time.Millisecond
	// faultLag is how long a fault takes that comes once: what else happens at the same moment is
	// done by then, in whichever order, so that each run ends alike.
	faultLag = 30 * time.Millisecond
	// hostTime is H for the pods and options of the machine: 2 s to publish, for each bucket
	// the schedule's time and 4 s beside it, and the containers' floor of 2 s.
	hostTime = (2 + (20 + 4) + (10 + 4) + 2) * time.Second
	// undisturbed is when the host is let go where nothing goes wrong.
	undisturbed = 7 * time.Second
	// holdTime is what a hold adds to it.
	holdTime = 10 * time.Second
	// releaseLag is half of the margin, in which the lock is let go after H.
	releaseLag = 250 * time.Millisecond
)
