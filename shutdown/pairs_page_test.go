//go:build linux && go1.25

package shutdown_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// update makes TestFaultsPage and TestStates write their pages instead of comparing them.
var update = flag.Bool("update", false, "write the pages in testdata from what happens")

const faultsPage = "testdata/faults.md"

// faultRow is a line of the page: a call, and the fault that it has.
type faultRow struct {
	text, kind string
	n          int // the first call that has it
}

var faultRows = []faultRow{
	{"Source.Connect", "connect", 1},
	{"Session.RequestDelay", "delay", 1},
	{"Session.Inhibit", "inhibit", 1},
	{"Session.Pending, of an agent that was restarted in the shutdown", "pending", 2},
	{"Reporter.PublishNode", "publish", 1},
	{"Options.Policy", "policy", 1},
	{"Options.Prepare", "prepare", 1},
	{"Options.Pods", "list", 1},
	{"Options.OnPlan", "plan", 1},
	{"Options.Hold", "hold", 1},
	{"Reporter.MarkNotReady", "mark", 1},
	{"PodKiller.KillPod", "kill", 1},
	{"the command of a preStop hook", "hook", 1},
	{"Runtime.StopContainer", "stop", 1},
	{"Options.Volumes", "volumes", 1},
	{"Reporter.FlushPod", "flush", 1},
	{"the writes of the record", "write", 1},
	{"Options.OnReport", "report", 1},
	{"Options.OnRelease", "release", 1},
	{"the Close of the lock", "unlock", 1},
}

// faultColumn is what goes wrong with a call, and for how long.
type faultColumn struct {
	text, way string
	lasts     time.Duration
}

const always = time.Hour

var faultColumns = []faultColumn{
	{"slow", slow, always},
	{"hangs", deaf, 0},
	{"fails once", failed, 0},
	{"fails for ever", failed, always},
	{"panics", dies, always},
	{"process killed and restarted", killed, 0},
}

// The page testdata/faults.md says how a shutdown ends when one call goes wrong. Each of its runs is
// judged as those of TestPairs are.
func TestFaultsPage(t *testing.T) {
	text, err := os.ReadFile(faultsPage)
	require.NoError(t, err)
	head, _, found := strings.Cut(string(text), "\n| call |")
	require.True(t, found)
	var table strings.Builder
	table.WriteString("\n| call |")
	for _, c := range faultColumns {
		fmt.Fprintf(&table, " %s |", c.text)
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(faultColumns)) + "\n")
	dir := memoryFolder(t)
	for _, row := range faultRows {
		fmt.Fprintf(&table, "| %s |", row.text)
		for _, column := range faultColumns {
			cell := "cannot happen"
			if (row.kind != "policy" || column.way != failed) && (row.kind != "write" || column.way != dies) {
				f := pairsFault{row.kind, column.way, row.n}
				runWorld(t, row.text+" "+column.text, dir, newPageWorld, func(w *pairsWorld) { cell = w.runForPage(f, column.lasts) })
			}
			fmt.Fprintf(&table, " %s |", cell)
		}
		table.WriteString("\n")
	}
	if page := head + table.String(); *update {
		require.NoError(t, os.WriteFile(faultsPage, []byte(page), 0o644))
	} else {
		require.Equal(t, page, string(text), "-update writes it anew")
	}
}

// newPageWorld makes the node of the page.
func newPageWorld(t *testing.T, dir string) *pairsWorld {
	w := newPairsWorld(t, 1, dir)
	w.latency, w.diskTakes, w.restart, w.keeps = 100*time.Millisecond, time.Millisecond, time.Second, true
	w.newPods = func() {
		w.addPod(0, "web", 30, 0, lifecycletest.Script{ExitAfterTerm: time.Second, Exec: leaves})
		w.addPod(1, "db", 30, 0, lifecycletest.Script{ExitAfterTerm: 2 * time.Second})
		w.addPod(2, "etcd", 30, 0, lifecycletest.Script{ExitAfterTerm: time.Second})
	}
	return w
}

// runForPage runs a shutdown with a fault, and returns what becomes of it.
func (w *pairsWorld) runForPage(f pairsFault, lasts time.Duration) string {
	w.troubles = []*pairsTrouble{{pairsFault: f, lasts: lasts}}
	w.begins(0, nil)
	if f.kind == "pending" {
		w.advance(time.Second)
		w.killAgent()
	}
	w.advance(65 * time.Second)
	cell := w.outcome()
	w.ends()
	return cell
}

// outcome says how the shutdown of the run has ended.
func (w *pairsWorld) outcome() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.table.all) == 0 {
		return "the agent does not hear of it, and holds nobody"
	}
	s, told, force := w.table.all[0], 0, 0
	cell := "the host is not held"
	if released, ok := w.host.Released(); w.host.Held() > 0 {
		cell = "the host waits to the end of its time"
	} else if ok && released.After(s.began) {
		cell = fmt.Sprintf("released after %v s", released.Sub(s.began).Round(time.Microsecond).Round(500*time.Millisecond).Seconds())
	}
	exits := w.rt.Exits()
	for _, exit := range exits {
		if exit.By == lifecycletest.ByKill {
			force++
		}
	}
	for _, p := range w.pods {
		if len(p.told) > 0 {
			told++
		}
	}
	cell += fmt.Sprintf(", %d of %d pods stopped", len(exits), len(w.pods))
	if force > 0 {
		cell += fmt.Sprintf(" (%d by force)", force)
	}
	if told != len(exits) {
		cell += fmt.Sprintf(", %d of their statuses told", told)
	}
	if r, found := w.agent().m.LastReport(); found {
		for _, p := range r.Pods {
			if p.Error != "" {
				r.Errors = append(r.Errors, p.Error)
			}
		}
		if len(r.Errors) > 0 {
			cell += "; named in the report"
		}
	}
	if n := len(w.agents); n > 1 {
		cell += fmt.Sprintf("; %d agents", n)
	}
	return cell
}
