package output

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/nodeplan"
)

// people writes for people.
type people struct {
	out    io.Writer
	screen Screen
	header nodeplan.Header
	shown  int // nodes
	node   func(p *people, b *strings.Builder, n nodeplan.Node)
}

// Begin says what all nodes have in common.
func (p *people) Begin(h nodeplan.Header) error {
	p.header = h
	var b strings.Builder
	p.paragraph(&b, needs(h))
	return p.write(&b)
}

// needs says what is asked of the host.
func needs(h nodeplan.Header) string {
	if h.Off {
		return "The graceful node shutdown is off: the kubelet's configuration has no shutdownGracePeriod. The host does not wait for pods."
	}
	said := "The host is asked for " + seconds(h.NeededSeconds)
	switch {
	case h.LimitSeconds == nil:
		return said + "; how long it waits is not known (--limit)."
	case *h.LimitSeconds < h.NeededSeconds:
		return said + ", but waits for " + seconds(*h.LimitSeconds) + " only."
	default:
		return said + ", and waits for up to " + seconds(*h.LimitSeconds) + "."
	}
}

// Node shows a node.
func (p *people) Node(n nodeplan.Node) error {
	p.shown++
	var b strings.Builder
	b.WriteByte('\n')
	p.headline(&b, n)
	p.node(p, &b, n)
	p.notes(&b, n)
	return p.write(&b)
}

func (p *people) headline(b *strings.Builder, n nodeplan.Node) {
	said := fmt.Sprintf("Node %s: %s, ", clean(n.Name), count(n.PodCount, "pod"))
	if n.CutShort == 0 {
		said += p.colored(text.FgGreen, "none is cut short")
	} else {
		said += p.colored(text.FgRed, fmt.Sprintf("%d cut short", n.CutShort)) + fmt.Sprintf(", %d s lost", n.LostSeconds)
	}
	if n.ReleaseSeconds > 0 {
		said += "; the host is let go after " + seconds(n.ReleaseSeconds) + " at the latest"
	}
	p.paragraph(b, said+".")
}

// notes says what is worth knowing of a node and its pods.
func (p *people) notes(b *strings.Builder, n nodeplan.Node) {
	var cut, warnings []string
	for _, bucket := range n.Buckets {
		for i := range bucket.Pods {
			pod := &bucket.Pods[i]
			if pod.Why != "" {
				cut = append(cut, pod.FullName()+": "+pod.Why)
			}
			for _, hook := range pod.Hooks {
				if hook.CutShort {
					cut = append(cut, fmt.Sprintf("%s: preStop %s, does not fit into %d s", pod.FullName(), hook.Text(), pod.GrantedSeconds))
				}
			}
			for _, warning := range pod.Warnings {
				warnings = append(warnings, pod.FullName()+": "+warning)
			}
		}
	}
	p.list(b, "Cut short:", cut)
	p.list(b, "Warnings:", append(n.Warnings, warnings...))
}

func (p *people) list(b *strings.Builder, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", title)
	for _, item := range items {
		p.item(b, clean(item))
	}
}

// End shows the sum of all nodes, and what to change.
func (p *people) End(s nodeplan.Summary) error {
	var b strings.Builder
	if s.NodeCount == 0 {
		p.paragraph(&b, "There are no pods.")
		return p.write(&b)
	}
	if s.NodeCount > 1 {
		b.WriteByte('\n')
		said := fmt.Sprintf("All in all %s with %s: ", count(s.NodeCount, "node"), count(s.PodCount, "pod"))
		if s.CutShort == 0 {
			said += p.colored(text.FgGreen, "none is cut short") + "."
		} else {
			said += p.colored(text.FgRed, fmt.Sprintf("%d cut short", s.CutShort)) + fmt.Sprintf(", %d s lost.", s.LostSeconds)
		}
		p.paragraph(&b, said)
		p.worst(&b, s)
		if p.shown < s.NodeCount {
			p.paragraph(&b, "--node NAME shows a node in full, --all shows all.")
		}
	}
	if len(s.Changes) > 0 {
		b.WriteString("\nWhat to change:\n")
	}
	for _, change := range s.Changes {
		p.item(&b, clean(change.Where)+": "+change.Why)
		for _, line := range change.Lines {
			fmt.Fprintf(&b, "      %s\n", p.colored(text.Bold, line)) // never broken: it is to be pasted
		}
	}
	return p.write(&b)
}

// paragraph writes words, broken at the width of the screen.
func (p *people) paragraph(b *strings.Builder, words string) { p.broken(b, "", "", words) }

// item writes an item of a list.
func (p *people) item(b *strings.Builder, words string) { p.broken(b, "  - ", "    ", words) }

// broken writes words after an indentation, that of the first line and that of others.
func (p *people) broken(b *strings.Builder, first, other, words string) {
	indent := first
	for line := range strings.SplitSeq(text.WrapSoft(words, p.screen.Width-len(first)), "\n") {
		fmt.Fprintln(b, strings.TrimRight(indent+strings.TrimLeft(line, " "), " "))
		indent = other
	}
}

func (p *people) colored(color text.Color, words string) string {
	if !p.screen.Color {
		return words
	}
	return text.Colors{color}.EscapeSeq() + words + text.EscapeReset
}

func (p *people) write(b *strings.Builder) error {
	_, err := io.WriteString(p.out, b.String())
	return err
}
