//go:build linux

package shutdown_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// stateCell is one cell of testdata/states.md: a manager is brought into a state and gets an input.
type stateCell struct {
	*node
	one       *boot
	reporter  shutdowntest.Reporter
	reports   chan shutdown.Report // of OnReport
	dies      atomic.Bool          // reports are lost
	state     string
	began     time.Time // of the shutdown of the state
	before    stateFacts
	ending    bool // the input was TerminateAll
	hostLeads bool // the host answers the next agent before the record is read
}

// stateFacts are what a user sees at one moment.
type stateFacts struct {
	at             time.Time
	open, webOpen  bool               // Admit of nil, and of the pod that a shutdown signals first
	held, released int                // locks that are held, and that were let go
	state          shutdown.NodeState // as published
	kills          []shutdowntest.Kill
	told           []shutdowntest.Flushed
	last           shutdown.Report
}

// equip gives an agent what the cell observes.
func (c *stateCell) equip(n *node) {
	n.killer = &shutdowntest.Killer{Pods: map[string]shutdowntest.Behaviour{"web": {Hangs: true}, "late": {Hangs: true}}}
	n.opts.Killer, n.opts.Reporter = n.killer, &c.reporter
	c.before.kills = nil
	n.opts.OnReport = func(_ context.Context, r shutdown.Report) {
		if !c.dies.Load() {
			c.reports <- r
		}
	}
}

// bring brings a manager into a state in the plainest way. by says who has announced the shutdown:
// the host, a notice through Trigger, or both. With "away" the agent never reaches the host, with
// "cut" an unsettled one does not. A former agent has left a lock, unless by has "bare".
func (c *stateCell) bring(state, by string) {
	away, bare := strings.Contains(by, "away"), strings.Contains(by, "bare")
	restarts := state == "unsettled" || state == "dismissed" && away
	if c.state = state; away && !restarts {
		c.host.ConnectErr, c.host.Left = errNoBus, !bare
	}
	if away && state == "released" {
		c.setPods() // so that it takes less than 5 s
	}
	c.runOnBoot(c.one)
	if state == "none" {
		return
	}
	c.began = time.Now()
	if strings.Contains(by, "host") || state == "dismissed" {
		c.host.Announce(shutdown.Event{Kind: shutdown.KindReboot, Origin: "host"})
	}
	if strings.Contains(by, "notice") {
		c.trigger(shutdown.Event{Origin: "notice"})
	}
	c.advance(4 * time.Second)
	if state == "released" && !away {
		c.advance(40 * time.Second)
		c.setPods(append(c.currentPods(), shutdowntest.Pod("late", 0, 60))...)
	}
	if state == "dismissed" {
		c.trigger(shutdown.Event{Cancelled: true})
		c.advance(time.Second)
	}
	if restarts {
		c.die()
		c.host.Left, c.host.PendingTakes, c.host.ConnectErr = !bare, 8*time.Second, map[bool]error{true: errNoBus}[away || strings.Contains(by, "cut")]
		c.startAgain(c.one)
		c.advance(time.Second)
	}
}

// die ends the agent like kill -9.
func (c *stateCell) die() {
	c.dies.Store(true)
	c.crash()
	c.dies.Store(false)
	c.equip(c.node)
}

// quit ends an agent in order. Pods that hang go on hanging.
func (c *stateCell) quit(n *node) {
	n.stop()
	n.stop = nil
	require.NoError(c.t, <-n.ended)
}

// startAgain starts another agent of this node on a boot, and does not wait for it.
func (c *stateCell) startAgain(on *boot) {
	c.host.PendingTakes = max(c.host.PendingTakes, map[bool]time.Duration{false: 20 * time.Millisecond}[c.hostLeads])
	if c.hostLeads {
		folder, err := os.Open(filepath.Join(c.opts.StateDir, ".graceful_node_shutdown_lock"))
		require.NoError(c.t, err)
		require.NoError(c.t, syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
		time.AfterFunc(40*time.Millisecond, func() { _ = folder.Close() })
	}
	m, err := shutdown.NewManagerOn(c.opts, on.sinceBoot)
	require.NoError(c.t, err)
	c.start(m)
}

func (c *stateCell) trigger(e shutdown.Event) { require.NoError(c.t, c.m.Trigger(e)) }

// lose has the session of the host lost. The next one has other answers.
func (c *stateCell) lose(pending *shutdown.Event, pendingErr, connectErr error) {
	c.host.SetPending(pending)
	c.host.Script(func(h *shutdowntest.Host) { h.PendingTakes, h.PendingErr, h.ConnectErr = 0, pendingErr, connectErr })
	c.host.Lose()
}

// facts returns what a user sees now.
func (c *stateCell) facts() stateFacts {
	f := stateFacts{
		at: time.Now(), open: c.m.Admit(nil).Admit, webOpen: c.m.Admit(shutdowntest.Pod("web", 0, 60)).Admit,
		held: c.host.Held(), released: strings.Count(fmt.Sprint(c.host.Calls()), "release"), kills: c.killer.Kills(), told: c.reporter.Flushed(),
	}
	for _, published := range c.reporter.Published() {
		if published.Err == nil {
			f.state = published.State
			f.state.Since = f.state.Since.Round(0).UTC() // as it is on record
		}
	}
	f.last, _ = c.m.LastReport()
	return f
}

// cell gives the input and says in words what a user sees then, and of reports and errors when
// everything is over.
func (c *stateCell) cell(give func(c *stateCell)) string {
	c.before = c.facts()
	give(c)
	c.advance(1500 * time.Millisecond) // a session that is lost is replaced after a second
	before, now := c.before, c.facts()
	c.advance(2 * time.Minute)
	later := c.facts()
	c.killer.Release()
	c.advance(time.Second)
	reports := c.reported()
	state := c.seenState(before, now, later)
	kills, released := now.kills[len(before.kills):], now.released > before.released
	granted := now.held-before.held+now.released-before.released > 0
	if state == c.state && len(kills) == 0 && !granted && !released && now.state == before.state {
		return "stays" + reports
	}
	if now.held == 0 && state != "released" && state != "off" {
		state += ", no lock"
	}
	words := []string{state, map[[3]bool]string{
		{true, false, true}: "lock taken", {true, true, true}: "lock re-taken", {true, true, false}: "lock taken, then let go",
		{false, true, true}: "lock let go", {false, true, false}: "lock let go",
	}[[3]bool{granted, released, now.held > 0}], map[bool]string{true: "web refused"}[now.open && !now.webOpen]}
	for _, k := range kills {
		word := fmt.Sprintf("%s %d", k.Pod.Name, *k.Request.GracePeriodSeconds)
		if after := k.Started.Sub(before.at).Round(time.Second); c.ending && after > time.Second {
			word += fmt.Sprintf(" after %v", after)
		}
		words = append(words, word)
	}
	for _, f := range now.told[len(before.told):] {
		words = append(words, map[bool]string{true: f.Pod + " told"}[f.Err == nil])
	}
	slices.Sort(words[3:])     // pods that are killed at the same time have no order
	c.advance(3 * time.Minute) // by now the question of seenState may have begun a shutdown
	if last, _ := c.m.LastReport(); strings.Contains(strings.Join(last.Errors, "\n"), progressFile) {
		words = append(words, "named")
	}
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), "; ") + reports
}

// seenState names the state that the facts show. If they fit none, it returns them.
func (c *stateCell) seenState(before, now, later stateFacts) string {
	since := func(t time.Time) bool { return now.state.Since.Sub(t).Abs() < time.Millisecond }
	up, quiet := now.state.ShuttingDown, now.state == before.state
	drains := !now.open && up && len(now.kills) > 0 && !later.open && later.held == 0
	switch {
	case c.ending && !now.open && !later.open && quiet && now.held == before.held:
		return "ending"
	case !now.open && up && since(now.last.Started) && !now.last.Ended.IsZero() && now.held == 0:
		return "released"
	case drains && since(c.began):
		return "draining"
	case drains && !now.state.Since.Before(before.at):
		return "draining, new"
	case !now.open && len(now.kills) == 0 && quiet:
		return "unsettled"
	case now.open && now.webOpen && later.open && quiet && c.m.Inhibitor().Off != "":
		return "off"
	case now.open && !up: // a shutdown that is pending begins one in none, and nothing in dismissed
		c.lose(&shutdown.Event{Kind: shutdown.KindReboot}, nil, nil)
		c.advance(3 * time.Second)
		if !c.m.Admit(nil).Admit {
			return "none"
		}
		require.Zero(c.t, later.held, "at the end of the host's time")
		return "dismissed"
	default:
		return fmt.Sprintf("open %t, published %+v, held %d, %d kills, report until %v, later open %t and held %d", now.open, now.state, now.held, len(now.kills), now.last.Ended, later.open, later.held)
	}
}

// reported says which reports there were, and what is on record if there were none.
func (c *stateCell) reported() string {
	last, _ := c.m.LastReport()
	var words []string
	cancelled := map[bool]string{true: " cancelled"}
	for len(c.reports) > 0 {
		r := <-c.reports
		words = append(words, fmt.Sprintf("%d %s%s", r.Started.Unix(), cmp.Or(string(r.Kind), r.Origin), cancelled[r.Cancelled]))
	}
	slices.Sort(words) // by time
	for i, word := range words {
		_, words[i], _ = strings.Cut(word, " ")
	}
	switch n := len(words); {
	case n > 0 && last.Cancelled && !strings.HasSuffix(words[n-1], cancelled[true]):
		words = append(words, "then cancelled")
	case n == 0 && !last.Started.IsZero():
		words = append(words, "record"+cmp.Or(cancelled[last.Cancelled], map[bool]string{true: " open", false: " over"}[last.Ended.IsZero()]))
	}
	return strings.TrimSuffix(" ["+strings.Join(words, ", ")+"]", " []")
}
