package node_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// script runs a scenario of testdata.
type script struct {
	*world
	printed int    // how many facts were printed
	state   string // the last printed state of the node
}

// Each scenario of testdata leads to its recorded output: the facts that a reader of a drain needs, each with its time
// in seconds. The line of a timetable has brackets for each bucket: its lowest priority, when the wait for its kills
// ends, and when the bucket ends. At the end of a scenario no promise of judge.Node is broken. go test -rewrite records
// the output again. Commands:
//
//	agent [schedule=none]      a new agent starts on a new node
//	pod NAME [priority=N] [grace=N] [takes=D] [stuck] [deleted]
//	limit D                    the host says how long it waits
//	host [after=D] [cancels]   the host announces a shutdown with a deadline, or cancels it
//	trigger [origin=O] [after=D] [cancels]   Trigger announces a shutdown, or cancels those of an origin
//	pending                    the host answers whether a shutdown is pending
//	terminateall               the agent calls TerminateAll
//	apiserver dead|hangs|alive calls of the API server fail at their deadlines, do not return, or work again
//	killer hangs|works         kills do not return, or return again
//	die [reads=3s]             the agent dies, and another one starts, which reads the log after this time
//	run D                      time passes
//	end                        all faults end, and the judge checks the run
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var s *script
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "agent" {
				s = newScript(!d.HasArg("schedule"))
			} else {
				s.do(t, d)
			}
			return s.print()
		})
	})
}

// newScript starts an agent in a world without pods and faults, and lets 2 s pass. Every call takes 10 ms.
func newScript(hasSchedule bool) *script {
	c := node.Config{}
	c.Options.Steps = plan.Steps{Publish: true, Readiness: true, Statuses: true}
	if hasSchedule {
		c.Schedule = plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: 1000, Seconds: 10}}
	}
	const seed, logDelay = 1, 0
	s := &script{world: newWorld(seed, c)}
	s.hasFixedLatency = true
	s.start(logDelay)
	s.run(2 * time.Second)
	return s
}

// do carries out a command of a scenario, as listed at TestScenarios. The command "agent" is not for do: it makes the script.
func (s *script) do(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	arg := func(name, otherwise string) string {
		if d.HasArg(name) {
			d.ScanArgs(t, name, &otherwise)
		}
		return otherwise
	}
	span := func(text string) time.Duration {
		span, err := time.ParseDuration(text)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return span
	}
	event := source.Event{Origin: arg("origin", "logind"), Cancelled: d.HasArg("cancels")}
	if d.HasArg("after") {
		event.Deadline = s.now.Add(span(arg("after", "")))
	}
	var first string // argument
	if len(d.CmdArgs) > 0 {
		first = d.CmdArgs[0].Key
	}
	switch d.Cmd {
	case "pod":
		var priority, grace int64
		_, _ = fmt.Sscan(arg("priority", "0"), &priority)
		_, _ = fmt.Sscan(arg("grace", "30"), &grace)
		p := s.addPod(first, int32(priority), grace, span(arg("takes", "1s"))) //nolint:gosec // a priority
		p.isStuck, p.Deleted = d.HasArg("stuck"), d.HasArg("deleted")
	case "limit":
		s.step(node.HostLimit(span(first)), "the host waits for "+first)
	case "host":
		s.pending = &event
		if event.Cancelled {
			s.pending = nil
		}
		s.step(node.Event{Event: event, Host: true}, "an event of the host")
	case "trigger":
		event.Origin = arg("origin", "notice")
		s.step(node.Event{Event: event}, "an event of Trigger")
	case "pending":
		s.answerPending()
	case "terminateall":
		s.step(node.TerminateAll{}, "TerminateAll")
	case "apiserver":
		s.apiServes, s.apiHangs = first == "alive", first == "hangs"
	case "killer":
		s.killerHangs = first == "hangs"
	case "die":
		s.add(judge.NodeFact{What: judge.NodeDied})
		s.start(span(arg("reads", "0s")))
	case "run":
		s.run(span(first))
	case "end":
		s.quiesce()
		s.run(3 * time.Minute)
		s.recordEnd()
	default:
		d.Fatalf(t, "unknown command")
	}
}

// print returns the facts since the last command.
func (s *script) print() string {
	var b strings.Builder
	for ; s.printed < len(s.record.Facts); s.printed++ {
		f := s.record.Facts[s.printed]
		switch f.What {
		case judge.NodeState:
			if f.State != s.state {
				fmt.Fprintf(&b, "%9.3f the state is %s\n", f.At.Sub(time.Unix(0, 0)).Seconds(), f.State)
			}
			s.state = f.State
		case judge.NodeFinished:
			broken := judge.Node(&s.record.NodeRecord)
			fmt.Fprintf(&b, "broken promises: %d\n%s", len(broken), strings.Join(broken, "\n"))
		case judge.NodeTimetable:
			if f.Planned {
				fmt.Fprintln(&b, f)
			}
		case judge.NodeKill, judge.NodeFinalStatusAccepted, judge.NodeMarked, judge.NodeUnmarked, judge.NodePublishBegins, judge.NodeReleased, judge.NodeLockRequested, judge.NodeRetaken,
			judge.NodeReported, judge.NodeCancelled, judge.NodePodEnded, judge.NodeAgentBegan, judge.NodePanicked,
			judge.NodeAborted:
			fmt.Fprintln(&b, f)
		default:
		}
	}
	return b.String()
}
