package output

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// terminalWriter writes tables or charts.
type terminalWriter struct {
	out      io.Writer
	screen   Screen
	shown    int // the number of nodes that were written
	drawNode func(t *terminalWriter, b *strings.Builder, n nodeplan.Node)
}

// Begin writes what is the same for all nodes.
func (t *terminalWriter) Begin(h nodeplan.Header) error {
	var b strings.Builder
	t.paragraph(&b, hostText(h))
	return t.write(&b)
}

// Node writes a node.
func (t *terminalWriter) Node(n nodeplan.Node) error {
	t.shown++
	var b strings.Builder
	b.WriteByte('\n')
	t.headline(&b, n)
	t.drawNode(t, &b, n)
	t.details(&b, n)
	return t.write(&b)
}

// headline writes the sums of a node.
func (t *terminalWriter) headline(b *strings.Builder, n nodeplan.Node) {
	sentence := fmt.Sprintf("Node %s: %s, ", clean(n.Name), countText(n.PodCount, "pod"))
	if n.CutShort == 0 {
		sentence += t.colored(text.FgGreen, "none is cut short")
	} else {
		sentence += t.colored(text.FgRed, fmt.Sprintf("%d cut short", n.CutShort)) + fmt.Sprintf(", %d s lost", n.LostSeconds)
	}
	if n.ReleaseSeconds > 0 {
		sentence += "; the host is let go after " + secondsText(n.ReleaseSeconds) + " at the latest"
	}
	t.paragraph(b, sentence+".")
}

// details writes why pods are cut short, and the warnings.
func (t *terminalWriter) details(b *strings.Builder, n nodeplan.Node) {
	var cutShort, warnings []string
	for _, bucket := range n.Buckets {
		for i := range bucket.Pods {
			pod := &bucket.Pods[i]
			if pod.Why != "" {
				cutShort = append(cutShort, pod.FullName()+": "+pod.Why)
			}
			for _, hook := range pod.Hooks {
				if hook.CutShort {
					cutShort = append(cutShort, fmt.Sprintf("%s: preStop %s, does not fit into %d s", pod.FullName(), hook.Text(), pod.GrantedSeconds))
				}
			}
			for _, warning := range pod.Warnings {
				warnings = append(warnings, pod.FullName()+": "+warning)
			}
		}
	}
	t.list(b, "Cut short:", cutShort)
	t.list(b, "Warnings:", append(n.Warnings, warnings...))
}

func (t *terminalWriter) list(b *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, item := range items {
		t.item(b, clean(item))
	}
}

// End writes the sums of all nodes, and what to change.
func (t *terminalWriter) End(s nodeplan.Summary) error {
	var b strings.Builder
	if s.NodeCount == 0 {
		t.paragraph(&b, "There are no pods.")
		return t.write(&b)
	}
	if s.NodeCount > 1 {
		b.WriteByte('\n')
		sentence := fmt.Sprintf("All in all %s with %s: ", countText(s.NodeCount, "node"), countText(s.PodCount, "pod"))
		if s.CutShort == 0 {
			sentence += t.colored(text.FgGreen, "none is cut short") + "."
		} else {
			sentence += t.colored(text.FgRed, fmt.Sprintf("%d cut short", s.CutShort)) + fmt.Sprintf(", %d s lost.", s.LostSeconds)
		}
		t.paragraph(&b, sentence)
		t.losses(&b, s)
		if t.shown < s.NodeCount {
			t.paragraph(&b, "--node NAME shows a node in full, --all shows all.")
		}
	}
	t.proposals(&b, s)
	return t.write(&b)
}

// proposals writes what to change.
func (t *terminalWriter) proposals(b *strings.Builder, s nodeplan.Summary) {
	if len(s.Proposals) > 0 {
		b.WriteString("\nWhat to change" + map[bool]string{true: ", one or the other"}[len(s.Proposals) > 1] + ":\n")
	}
	for _, proposal := range s.Proposals {
		t.item(b, clean(proposal.Title)+". "+gainText(proposal, s))
		for _, change := range proposal.Changes {
			t.wrapped(b, "    ", "    ", clean(placeText(change)))
			for _, line := range change.Lines {
				t.pasted(b, line)
			}
		}
	}
}

// placeText says where the lines of a change belong.
func placeText(c nodeplan.Change) string {
	if c.Why == "" {
		return "In " + c.Where + ":"
	}
	return "In " + c.Where + " (" + c.Why + "):"
}

// gainText says by how much the plan is better with a proposal.
func gainText(p nodeplan.Proposal, s nodeplan.Summary) string {
	return fmt.Sprintf("Of %s %d are cut short then, not %d; %d s are lost, not %d.", countText(s.PodCount, "pod"), p.CutShort, s.CutShort, p.LostSeconds, s.LostSeconds)
}

// pasted writes a line that is not wrapped, so that it can be pasted; "" is none.
func (t *terminalWriter) pasted(b *strings.Builder, line string) {
	if line != "" {
		fmt.Fprintf(b, "      %s\n", t.colored(text.Bold, line))
	}
}

// paragraph writes a text, wrapped to the width of the screen.
func (t *terminalWriter) paragraph(b *strings.Builder, s string) { t.wrapped(b, "", "", s) }

// item writes an item of a list, wrapped to the width of the screen.
func (t *terminalWriter) item(b *strings.Builder, s string) { t.wrapped(b, "  - ", "    ", s) }

// wrapped writes a text, wrapped to the width of the screen. first is the indentation of its
// first line, and other that of its other lines.
func (t *terminalWriter) wrapped(b *strings.Builder, first, other, s string) {
	indent := first
	for line := range strings.SplitSeq(text.WrapSoft(s, t.screen.Width-len(first)), "\n") {
		fmt.Fprintln(b, strings.TrimRight(indent+strings.TrimLeft(line, " "), " "))
		indent = other
	}
}

func (t *terminalWriter) colored(color text.Color, s string) string {
	if !t.screen.Color {
		return s
	}
	return text.Colors{color}.EscapeSeq() + s + text.EscapeReset
}

func (t *terminalWriter) write(b *strings.Builder) error {
	_, err := io.WriteString(t.out, b.String())
	return err
}
