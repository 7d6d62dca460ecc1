package output

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// terminal collects the text for a screen, wrapped to its width.
type terminal struct {
	width int // in columns
	text  strings.Builder
}

// showPlan shows a plan: how long the host waits, the sum of all nodes, the proposals ("What to change"), the workloads
// and nodes that lose most ("Where to begin"), and the nodes themselves.
func (t *terminal) showPlan(d nodeplan.Document) {
	for _, line := range hostLines(d.Header) {
		t.showParagraph(line)
	}
	if d.Summary.NodeCount != 1 {
		t.showParagraph(sumLine(d.Summary))
	}
	hidesNodes := len(d.Nodes) < d.Summary.NodeCount
	t.showChanges(d.Summary, hidesNodes)
	if rows := lossRows(d.Summary); rows != nil {
		t.text.WriteString("\nWhere to begin:\n" + renderTable(rows))
	}
	if hidesNodes {
		t.text.WriteByte('\n')
		t.showParagraph("--node NAME shows a node in full; -o html shows the lines to paste for every proposal.")
	}
	for _, n := range d.Nodes {
		t.showNode(n)
	}
	if len(d.Nodes) > 0 {
		t.text.WriteByte('\n')
		t.showParagraph("START and END are the latest possible times, counted from the announcement: a pod is told to stop as soon as all before it have ended.")
	}
	if slices.ContainsFunc(d.Nodes, nodeplan.Node.HasGuessedPriorities) {
		t.showParagraph("? A priority is guessed; -o json has the reasons.")
	}
}

// showChanges shows what to change: the proposals and the outliers. With isBrief only the best proposal has its lines to
// paste, so that a plan of many nodes stays short.
func (t *terminal) showChanges(s nodeplan.Summary, isBrief bool) {
	outliers := outlierLines(s)
	if len(s.Proposals)+len(outliers) > 0 {
		fmt.Fprintf(&t.text, "\n%s:\n", changeTitle(s))
	}
	for i, proposal := range s.Proposals {
		t.showItem(proposalText(proposal))
		if isBest := i == 0; isBrief && !isBest {
			continue
		}
		for _, change := range proposal.Changes {
			t.showWrapped("    ", "    ", placeText(change))
			for _, line := range change.Lines {
				t.showLineToPaste(line)
			}
		}
	}
	for _, line := range outliers {
		t.showItem(line)
	}
}

// showNode shows a node: its buckets with their pods, the hooks that are cut short, and the warnings.
func (t *terminal) showNode(n nodeplan.Node) {
	sentence := fmt.Sprintf("Node %s: %s, %s", n.Name, CountText(n.PodCount, "pod"), lossText(n.CutShort, n.LostSeconds))
	if n.ReleaseSeconds > 0 {
		sentence += "; the inhibitor lock is released after " + duration.Seconds(n.ReleaseSeconds) + " at the latest"
	}
	t.text.WriteByte('\n')
	t.showParagraph(sentence + ".")
	var hooks []string
	warnings := slices.Clone(n.Warnings)
	for _, bucket := range n.Buckets {
		t.text.WriteByte('\n')
		t.showParagraph(bucketLine(bucket))
		if len(bucket.Pods) > 0 {
			t.text.WriteString(podTable(bucket.Pods))
		}
		for i := range bucket.Pods {
			pod := &bucket.Pods[i]
			for _, hook := range hookTexts(pod) {
				hooks = append(hooks, pod.FullName()+": "+hook)
			}
			for _, warning := range pod.Warnings {
				warnings = append(warnings, pod.FullName()+": "+warning)
			}
		}
	}
	t.showList("Hooks that are cut short:", hooks)
	t.showList("Warnings:", warnings)
}

// showList shows a title and a list. It shows nothing if the list is empty.
func (t *terminal) showList(title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintf(&t.text, "\n%s\n", title)
	for _, item := range items {
		t.showItem(item)
	}
}

// showLineToPaste shows a line that a reader may paste, so it is not wrapped. It shows nothing for "".
func (t *terminal) showLineToPaste(line string) {
	if line != "" {
		fmt.Fprintf(&t.text, "      %s\n", clean(line))
	}
}

// showParagraph shows a text, wrapped to the width of the screen.
func (t *terminal) showParagraph(s string) { t.showWrapped("", "", s) }

// showItem shows an item of a list, wrapped to the width of the screen.
func (t *terminal) showItem(s string) { t.showWrapped("  - ", "    ", s) }

// showWrapped shows a text, wrapped to the width of the screen. Its first line begins with firstIndent, and its other
// lines with otherIndent, which has as many columns.
func (t *terminal) showWrapped(firstIndent, otherIndent, s string) {
	indent := firstIndent
	for line := range strings.SplitSeq(text.WrapSoft(clean(s), t.width-len(firstIndent)), "\n") {
		fmt.Fprintln(&t.text, strings.TrimRight(indent+strings.TrimLeft(line, " "), " "))
		indent = otherIndent
	}
}

// clean replaces every character that is not printable ASCII by a question mark. A text may contain names from
// a file that was not made by Kubernetes: a control character could change the terminal, and a character of
// unknown width would break the layout.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// podTable returns a table of pods.
func podTable(pods []nodeplan.Pod) string {
	rows := make([][]string, 1, 1+len(pods))
	rows[0] = []string{"POD", "PRIORITY", "ASKS", "GETS", "START", "END"}
	for i := range pods {
		pod := &pods[i]
		gets := duration.Seconds(pod.GrantedSeconds)
		if pod.CutShort {
			gets = "!" + gets
		}
		rows = append(rows, []string{pod.FullName(), priorityText(pod), duration.Seconds(pod.OwnSeconds), gets, duration.Seconds(pod.LatestStartSeconds), duration.Seconds(pod.LatestEndSeconds)})
	}
	return renderTable(rows)
}

// renderTable formats a table, whose first row is the header. The first column and a column OUTCOME are left-aligned,
// all others right-aligned.
func renderTable(rows [][]string) string {
	w := table.NewWriter()
	w.SetStyle(table.Style{Options: table.OptionsNoBordersAndSeparators, Box: table.BoxStyle{PaddingRight: "  "}})
	w.SuppressTrailingSpaces()
	configs := make([]table.ColumnConfig, 0, len(rows[0]))
	for i, name := range rows[0] {
		align := text.AlignRight
		if i == 0 || name == "OUTCOME" {
			align = text.AlignLeft
		}
		configs = append(configs, table.ColumnConfig{Number: i + 1, Align: align})
	}
	w.SetColumnConfigs(configs)
	for _, row := range rows {
		cells := make(table.Row, 0, len(row))
		for _, cell := range row {
			cells = append(cells, clean(cell))
		}
		w.AppendRow(cells)
	}
	return strings.TrimSuffix(w.Render(), "\n") + "\n"
}
