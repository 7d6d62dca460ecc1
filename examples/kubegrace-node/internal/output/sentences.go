package output

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// hostLines returns sentences that say whose plan it is, how long the host is asked to wait, and how long it
// waits.
func hostLines(h nodeplan.Header) []string {
	whose := "A stock kubelet's plan."
	if h.Agent == nodeplan.Kubegrace {
		whose = "kubegrace's plan."
	}
	asks := "It asks the host for " + duration.Seconds(h.NeededSeconds)
	switch {
	case h.Off:
		asks = "The graceful node shutdown is off: shutdownGracePeriod is not set."
	case h.LimitSeconds == nil:
		asks += "; how long the host waits is not known."
	case *h.LimitSeconds < h.NeededSeconds:
		asks += ", but the host waits for " + duration.Seconds(*h.LimitSeconds) + " only."
	default:
		asks += ", and the host waits for up to " + duration.Seconds(*h.LimitSeconds) + "."
	}
	lines := []string{whose, asks}
	if h.Agent == nodeplan.Kubelet && h.LimitSeconds == nil && !h.Off {
		lines = append(lines, "If the host waits for less, the kubelet takes no lock at all.")
	}
	if h.NoLock {
		lines = append(lines, "So it takes no lock.")
	}
	if h.Off || h.NoLock {
		lines = append(lines, "systemd ends all containers at once, without preStop hooks and in no order.")
	}
	return lines
}

// sumLine returns a sentence with the sums over all nodes.
func sumLine(s nodeplan.Summary) string {
	if s.NodeCount == 0 {
		return "There are no pods."
	}
	return fmt.Sprintf("%s with %s: %s.", CountText(s.NodeCount, "node"), CountText(s.PodCount, "pod"), lossText(s.CutShort, s.LostSeconds))
}

// lossText says how many pods are cut short, and how many seconds they lose.
func lossText(cutShort int, lostSeconds int64) string {
	switch {
	case cutShort == 0:
		return "none is cut short"
	case lostSeconds == 0: // only preStop hooks are cut short
		return fmt.Sprintf("%d cut short", cutShort)
	default:
		return fmt.Sprintf("%d cut short, %s lost", cutShort, duration.Seconds(lostSeconds))
	}
}

// changeTitle returns the heading above the proposals. It says that they are alternatives if there are several.
func changeTitle(s nodeplan.Summary) string {
	if len(s.Proposals) > 1 {
		return "What to change, one or the other"
	}
	return "What to change"
}

// proposalText says what a proposal changes and which losses then remain.
func proposalText(p nodeplan.Proposal) string {
	return p.Title + ": " + lossText(p.CutShort, p.LostSeconds) + " then."
}

// placeText says into which file the lines of a change belong.
func placeText(c nodeplan.Change) string {
	if c.Why == "" {
		return "In " + c.Where + ":"
	}
	return "In " + c.Where + " (" + c.Why + "):"
}

// shownOutliers is how many outliers are named.
const shownOutliers = 3

// outlierLines returns sentences that name the pods for which no bucket is proposed, because they ask for too
// much. Three workloads are named, and the others are counted.
func outlierLines(s nodeplan.Summary) (lines []string) {
	for _, o := range s.Outliers[:min(len(s.Outliers), shownOutliers)] {
		noun, asks, they := "pod", "asks for", "it is"
		if o.Critical {
			noun = "critical pod"
		}
		if o.PodCount > 1 {
			asks, they = "ask for up to", "they are"
		}
		lines = append(lines, fmt.Sprintf("%s %s %s: %s; no bucket of that length is proposed, and %s cut short.",
			CountText(o.PodCount, noun), asks, duration.Seconds(o.AsksSeconds), o.Name, they))
	}
	if more := len(s.Outliers) - shownOutliers; more > 0 {
		lines = append(lines, fmt.Sprintf("Pods of %s ask for too much too.", CountText(more, "other workload")))
	}
	return lines
}

// bucketLine returns the line above the pods of a bucket.
func bucketLine(b nodeplan.Bucket) string {
	line := fmt.Sprintf("Bucket %d, %s", b.Priority, duration.Seconds(b.Seconds))
	if b.Seconds < b.ConfiguredSeconds {
		line += " of its " + duration.Seconds(b.ConfiguredSeconds)
	}
	switch {
	case len(b.Pods) == 0:
		return line + ": no pods, it is skipped."
	case b.Seconds == 0:
		return line + ", killed at once: " + CountText(len(b.Pods), "pod") + "."
	default:
		return line + ", over after " + duration.Seconds(b.EndSeconds) + " at the latest: " + CountText(len(b.Pods), "pod") + "."
	}
}

// priorityText returns the priority of a pod, with a question mark if it is guessed.
func priorityText(pod *nodeplan.Pod) string {
	text := strconv.Itoa(int(pod.Priority))
	if pod.PriorityIsGuessed() {
		text += "?"
	}
	return text
}

// hookTexts returns a sentence for each preStop hook that sleeps for longer than the grace period that its pod gets.
func hookTexts(pod *nodeplan.Pod) (texts []string) {
	for _, hook := range pod.Hooks {
		if hook.CutShort {
			texts = append(texts, fmt.Sprintf("preStop %s, does not fit into %s.", hook.Text(), duration.Seconds(pod.GrantedSeconds)))
		}
	}
	return texts
}

// lossRows returns a table of the workloads and the nodes whose pods lose the most grace time: at most four workloads
// and four nodes, so that what follows the table is not far down. The first row is the header. If no pod loses any, or for
// a single node, it returns nil.
func lossRows(s nodeplan.Summary) [][]string {
	if s.NodeCount <= 1 || len(s.Losses) == 0 {
		return nil
	}
	const maxRows = 4 // of workloads, and again of nodes
	rows := [][]string{{"LOSES MOST", "PODS", "CUT", "LOST"}}
	counts := map[string]int{} // by Loss.By: workload or node
	for _, loss := range s.Losses {
		counts[loss.By]++
		if counts[loss.By] <= maxRows {
			rows = append(rows, []string{loss.By + " " + loss.Name, strconv.Itoa(loss.PodCount), strconv.Itoa(loss.CutShort), duration.Seconds(loss.LostSeconds)})
		}
	}
	return rows
}

// CountText returns a number and a noun, as in "1 pod" or "3 pods".
func CountText(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ConfigText describes the shutdown fields of a configuration, as a part of a sentence.
func ConfigText(c plan.Config) string {
	if len(c.ShutdownGracePeriodByPodPriority) > 0 {
		parts := make([]string, len(c.ShutdownGracePeriodByPodPriority))
		for i, bucket := range c.ShutdownGracePeriodByPodPriority {
			parts[i] = fmt.Sprintf("%s from priority %d", duration.Seconds(bucket.ShutdownGracePeriodSeconds), bucket.Priority)
		}
		return strings.Join(parts, ", ")
	}
	if c.ShutdownGracePeriod.Duration == 0 {
		return "no graceful node shutdown"
	}
	return fmt.Sprintf("%s, of them %s for critical pods", duration.Text(c.ShutdownGracePeriod.Duration), duration.Text(c.ShutdownGracePeriodCriticalPods.Duration))
}
