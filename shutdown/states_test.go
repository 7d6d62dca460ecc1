//go:build linux && go1.25

package shutdown_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

var errNoBus, tableText = errors.New("no bus"), regexp.MustCompile(`(?m)(^\|.*\n)+`)

// stateRow is an input, and what a user is to see of it in each column, as the design of the states
// has it. "-": it cannot come, or another row has it.
type stateRow struct {
	input   string
	prepare func(c *stateCell, column string)
	give    func(c *stateCell)
	cells   string
}

// inputRows has an input to each of the five states.
func inputRows() []stateRow {
	by := func(by string) func(*stateCell, string) {
		return func(c *stateCell, state string) { c.bring(state, by) }
	}
	host, notice, both, bare := by("host"), by("notice"), by("host, notice"), by("host, bare, cut")
	reboot := shutdown.Event{Kind: shutdown.KindReboot, Origin: "host"}
	sooner := func() shutdown.Event {
		return shutdown.Event{Kind: reboot.Kind, Origin: "host", Deadline: time.Now().Add(12 * time.Second)}
	}
	noNotice := shutdown.Event{Cancelled: true, Origin: "notice"}
	announce := func(e shutdown.Event) func(*stateCell) { return func(c *stateCell) { c.host.Announce(e) } }
	trigger := func(e shutdown.Event) func(*stateCell) { return func(c *stateCell) { c.trigger(e) } }
	pending := func(e *shutdown.Event, err error) func(*stateCell) { return func(c *stateCell) { c.lose(e, err, nil) } }
	cancel := func(c *stateCell) { c.host.Cancel() }
	wait := func(d time.Duration) func(*stateCell) { return func(c *stateCell) { c.advance(d) } }
	return []stateRow{
		{"event of the host, its first", notice, announce(reboot), "draining, new; web 20 [reboot] | draining; web 15 [reboot] | stays [reboot] | draining, no lock; late 20; web 0 [notice, reboot] | -"},
		{"event of Trigger, its first", notice, trigger(shutdown.Event{Origin: "second"}), "draining, new; web 20 [second] | draining; web 15 [notice] | stays [notice] | draining; lock taken; late 20; web 0 [notice, notice] | draining, new [reboot cancelled, second]"},
		{"event of the host, of another kind", host, announce(shutdown.Event{Kind: shutdown.KindSoftReboot}), "- | draining, new; web 20 [soft-reboot] | - | - | -"},
		{"event of the host again, not earlier", host, announce(reboot), "- | - | stays [reboot] | stays [reboot] | draining, new [reboot cancelled, reboot]"},
		{"event of Trigger again, not earlier", notice, trigger(shutdown.Event{Origin: "notice"}), "- | - | stays [notice] | stays [notice] | draining, new [reboot cancelled, notice]"},
		{"event of the host again, with 12 s left", host, func(c *stateCell) { c.host.Announce(sooner()) }, "- | draining; web 2 [reboot] | draining; web 2 [reboot] | stays [reboot] | draining, new; web 2 [reboot cancelled, reboot]"},
		{"cancellation by the host", host, cancel, "stays | none [record cancelled] | none; lock re-taken; web refused [reboot cancelled] | none; lock taken; web refused [reboot, then cancelled] | none; lock re-taken; web refused [reboot cancelled]"},
		{"cancellation by the host, a notice stands", both, cancel, "- | draining; web 15 [reboot] | stays [reboot] | stays [reboot] | -"},
		{"cancellation by Trigger, of a notice", notice, trigger(noNotice), "stays | stays [record cancelled] | none; lock re-taken; web refused [notice cancelled] | none; lock taken; web refused [notice, then cancelled] | stays [reboot cancelled]"},
		{"the same, then Pending: cannot tell", notice, func(c *stateCell) { c.trigger(noNotice); c.lose(nil, errors.ErrUnsupported, nil) }, "- | none; lock re-taken [record cancelled] | - | - | -"},
		{"cancellation by Trigger, of a notice, the host's stands", both, trigger(noNotice), "- | stays [reboot] | stays [reboot] | stays [reboot] | -"},
		{"cancellation by Trigger, of an unknown origin", host, trigger(noNotice), "stays | stays [reboot] | stays [reboot] | stays [reboot] | stays [reboot cancelled]"},
		{"cancellation by Trigger, of all, the host's stands", host, trigger(shutdown.Event{Cancelled: true}), "stays | dismissed [record cancelled] | dismissed; web refused [reboot cancelled] | dismissed, no lock; web refused [reboot, then cancelled] | stays [reboot cancelled]"},
		{"cancellation by Trigger, of all, none is the host's", notice, trigger(shutdown.Event{Cancelled: true}), "- | none [record cancelled] | none; lock re-taken; web refused [notice cancelled] | none; lock taken; web refused [notice, then cancelled] | -"},
		{"Pending: yes", notice, pending(&reboot, nil), "draining, new; web 20 [reboot] | draining; web 14 [reboot] | stays [reboot] | stays [notice] | stays [reboot cancelled]"},
		{"Pending: yes, its deadline has passed", host, func(c *stateCell) { past := reboot; past.Deadline = time.Now(); c.lose(&past, nil, nil) }, "stays | released; lock let go [record over] | stays [reboot] | stays [reboot] | stays [reboot cancelled]"},
		{"Pending: no", host, pending(nil, nil), "none; lock re-taken | none; lock re-taken [record cancelled] | none; lock re-taken; web refused [reboot cancelled] | none; lock taken; web refused [reboot, then cancelled] | none; lock re-taken; web refused [reboot cancelled]"},
		{"Pending: no, the host has announced nothing", notice, pending(nil, nil), "- | draining; web 14 [notice] | stays [notice] | released; lock taken, then let go [notice] | -"},
		{"Pending: cannot tell", host, pending(&reboot, errors.ErrUnsupported), "stays | draining; web 14 [reboot] | stays [reboot] | stays [reboot] | stays [reboot cancelled]"},
		{"source not reached for 5 s, a lock was adopted", by("notice, away"), wait(4 * time.Second), "stays | draining; web 11 [notice] | stays [notice] | stays [notice] | stays [record cancelled]"},
		{"source not reached for 5 s, no lock was", by("notice, away, bare"), wait(4 * time.Second), "stays | stays [record over] | stays [notice] | stays [notice] | stays [record cancelled]"},
		{"H passes", bare, wait(40 * time.Second), "- | none, no lock [record over] | released; lock let go; etcd 10; etcd told [reboot] | stays [reboot] | dismissed, no lock; lock let go; web refused [reboot cancelled]"},
		{"session lost", host, func(c *stateCell) { c.lose(&reboot, nil, errNoBus) }, "stays | stays [reboot] | stays [reboot] | stays [reboot] | stays [reboot cancelled]"},
		{"TerminateAll", bare, func(c *stateCell) {
			c.ending = true
			go func() {
				report, err := c.m.TerminateAll(context.WithoutCancel(c.t.Context()))
				require.Equal(c.t, fmt.Sprint(report.Err()), fmt.Sprint(err))
			}()
			c.advance(5 * time.Second)
		}, "ending; web 20 [TerminateAll] | ending, no lock; web 20 after 5s [TerminateAll] | ending [reboot] | ending, no lock; late 20; web 0 [reboot, TerminateAll] | ending [reboot cancelled, TerminateAll]"},
		{"Run ends, and another agent begins", host, func(c *stateCell) {
			c.quit(c.node)
			c.equip(c.node)
			c.host.PendingTakes = 0
			c.startAgain(c.one)
		}, "none; lock re-taken | draining, no lock; lock let go; web 15 [reboot] | draining, no lock; lock let go; web 16 [reboot] | stays [reboot] | dismissed, no lock; lock let go [reboot cancelled]"},
	}
}

// startRows has what an agent finds when it starts.
func startRows() []stateRow {
	left := func(last, then func(*stateCell)) func(*stateCell, string) { // by an agent that has died without an API server
		return func(c *stateCell, _ string) {
			c.reporter.FlushErr = func(int) error { return errNoBus }
			c.setPods(append(c.currentPods(), shutdowntest.Pod("job", 0, 60))...)
			c.bring("draining", "host")
			c.reporter.PublishErr = c.reporter.FlushErr
			last(c)
			c.advance(time.Second)
			c.die()
			c.reporter.FlushErr, c.reporter.PublishErr, c.host.Left = nil, nil, true
			c.setPods(c.pods[:2]...) // job has ended
			then(c)
		}
	}
	none, idle := func(*stateCell) {}, func(c *stateCell, _ string) { c.bring("none", "") }
	reboot := &shutdown.Event{Kind: shutdown.KindReboot}
	pending, nothing := func(c *stateCell) { c.host.SetPending(reboot) }, func(c *stateCell) { c.host.SetPending(nil) }
	start := func(c *stateCell) { c.startAgain(c.one) }
	later := func(c *stateCell) { c.advance(time.Minute); start(c) }
	record := func(c *stateCell) []byte {
		data, err := os.ReadFile(filepath.Join(c.opts.StateDir, progressFile))
		require.NoError(c.t, err)
		return data
	}
	beside := func(c *stateCell, pending *shutdown.Event) { // an agent that has the folder
		c.before.held, c.before.released = 0, 0 // on a host of its own
		c.node = c.startOther(c.currentPods(), c.one, func(other *node) {
			c.equip(other)
			other.host.SetPending(pending)
			other.host.Left, other.host.PendingTakes = true, 8*time.Second
		})
	}
	return []stateRow{
		{"no record; Pending: yes", func(c *stateCell, _ string) { idle(c, ""); c.end(); pending(c) }, start, "draining, new, no lock; web 20 [reboot]"},
		{"a live record; the host has not said", left(none, pending), func(c *stateCell) { c.host.PendingTakes = 8 * time.Second; start(c) }, "unsettled; lock taken; job told [reboot]"},
		{"a live record; Pending: yes", left(none, pending), start, "draining; lock taken; job told; web 15 [reboot]"},
		{"H is past; Pending: yes", left(none, pending), later, "released; lock taken, then let go; job told [record over]"},
		{"H is past; Pending: no", left(none, nothing), later, "none; lock re-taken; job told [record over]"},
		{"dismissed by Trigger; Pending: yes", left(func(c *stateCell) { c.trigger(shutdown.Event{Cancelled: true}) }, pending), start, "dismissed; lock taken; job told [record cancelled]"},
		{"cancelled by the host; Pending: yes", left(func(c *stateCell) { c.host.Cancel() }, pending), start, "draining, new; lock taken; job told; web 20 [reboot]"},
		{"another boot", left(none, nothing), func(c *stateCell) { c.startAgain(&boot{id: "two", began: time.Now()}) }, "none; lock re-taken; job told; web told [record open]"},
		{"an unreadable record", left(none, nothing), func(c *stateCell) {
			require.NoError(c.t, os.Truncate(filepath.Join(c.opts.StateDir, progressFile), int64(len(record(c))-10)))
			start(c)
		}, "none; lock re-taken; job told; named"},
		{"another agent has the folder", idle, func(c *stateCell) { beside(c, nil) }, "unsettled; lock taken"},
		{"the folder is had after 3 s, with a live record", func(c *stateCell, _ string) { c.bring("draining", "host") }, func(c *stateCell) {
			former := c.node
			beside(c, reboot)
			c.advance(3 * time.Second)
			c.quit(former)
			c.advance(3 * time.Second)
		}, "draining; lock taken; web 11 [reboot]"},
		{"the folder is not had for 10 s", idle, func(c *stateCell) { beside(c, nil); c.advance(10 * time.Second) }, "none; lock re-taken"},
		{"a live record; the gate is off", left(none, nothing), func(c *stateCell) {
			c.opts.Gates, c.opts.Config = gates{}, plan.Config{}
			before := record(c)
			later(c)
			require.Equal(c.t, before, record(c))
		}, "off"},
	}
}

// Each state of a node shutdown gets each input, and an agent finds each record when it starts. What
// a user sees is what the design says. The tables of testdata/states.md are what was seen; run the
// test with -update to write them anew.
func TestStates(t *testing.T) {
	inputs := stateTable(t, "input | none | unsettled | draining | released | dismissed", inputRows(), false)
	starts := stateTable(t, "an agent finds | it becomes", startRows(), false)
	require.Equal(t, starts, stateTable(t, "an agent finds | it becomes", startRows(), true))
	const page = "testdata/states.md"
	was, err := os.ReadFile(page)
	require.NoError(t, err)
	tables := []string{inputs, starts}
	is := tableText.ReplaceAllStringFunc(string(was), func(string) (table string) {
		table, tables = tables[0], tables[1:]
		return table
	})
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(is), 0o644))
	} else {
		require.Equal(t, is, string(was), "-update writes it anew")
	}
}

// stateTable runs rows in all columns of a head, and returns the table of what was seen.
func stateTable(t *testing.T, head string, rows []stateRow, hostLeads bool) string {
	columns := strings.Split(head, " | ")
	var text strings.Builder
	text.WriteString("| " + head + " |\n|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, row := range rows {
		cells := strings.Split(row.cells, " | ")
		for i, want := range cells {
			if want == "-" {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/%t", row.input, columns[i+1], hostLeads), func(t *testing.T) {
				inBubbleWithState(t, twoPods(), func(_ *testing.T, n *node, one *boot) {
					c := &stateCell{node: n, one: one, reports: make(chan shutdown.Report, 10), hostLeads: hostLeads}
					c.equip(n)
					row.prepare(c, columns[i+1])
					cells[i] = c.cell(row.give)
					c.end() // of another agent, if c has one
				})
				require.Equal(t, want, cells[i])
			})
		}
		text.WriteString("| " + row.input + " | " + strings.Join(cells, " | ") + " |\n")
	}
	return text.String()
}
