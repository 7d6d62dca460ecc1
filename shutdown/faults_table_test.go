//go:build linux && go1.25

package shutdown_test

import (
	"fmt"
	"strings"
)

// faultTable returns the text of testdata/faults.md with the given cells.
func faultTable(ends map[cell]string) string {
	var b strings.Builder
	b.WriteString(faultHeader)
	b.WriteString("\n| step |")
	for _, f := range allFaults() {
		fmt.Fprintf(&b, " %s |", f)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(allFaults())) + "\n")
	for _, s := range allSteps() {
		fmt.Fprintf(&b, "| **%s**: %s |", s.step, s.seam)
		for _, f := range allFaults() {
			fmt.Fprintf(&b, " %s |", ends[cell{s.step, f}])
		}
		b.WriteString("\n")
	}
	return b.String()
}

const faultHeader = `# What becomes of a shutdown in which something goes wrong

Each line is a step of a shutdown and the code outside of the manager on which it depends; each
column is what goes wrong there. A cell says how the shutdown ended. The test TestFaultMatrix
goes through all of them and compares; "go test -run TestFaultMatrix -update ./shutdown" writes
this page anew from what happens. The test itself checks what must hold in every cell.

The node has three pods: web (a preStop hook of 2 s, ends 3 s after its stop signal), db (ends
after 4 s) and, of critical priority, etcd (ends after 2 s). The schedule gives 20 s to the first
two and 10 s to etcd. The host is asked for 42 s and the margin: the kills, and what is done
beside them. Without a fault the host is released 7 s after the announcement. A fault of a
single pod hits web.

- slow: each call takes 1.5 s longer. hangs: the first call never returns, whatever becomes of
  its context. fails once: the first call gives an error. fails for ever, panics: each call does.
- context cancelled: the agent is told to end in the first call. Nobody takes its place before
  the machine has gone down and come back.
- process killed and restarted: the agent is killed in the first call, without a last word. The
  next one is started a second later and has the copy of the lock that systemd has kept.
- learned by SIGTERM: 4 s after the announcement the agent had not heard of it, and triggers the
  shutdown itself. By force: the container was killed, because its time was over.
- named: the report of the shutdown, or the error of Run, says what went wrong.
- statuses told: final statuses that the API server had acknowledged when the host's time was
  over. When the machine has come back, the next agent sends the others, which the test checks.
`
