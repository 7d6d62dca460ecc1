package view

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// writeChanges writes a line for each change between two snapshots. If a shutdown has begun in between, a line
// that announces it comes first.
func writeChanges(out *bytes.Buffer, before, now Snapshot) {
	podsBefore := map[string]Pod{}
	for _, p := range before.Pods {
		podsBefore[p.Name] = p
	}
	if before.Began.IsZero() && !now.Began.IsZero() {
		// One pod of each bucket: the pods are in the order in which they stop, so those of a bucket are adjacent.
		buckets := slices.CompactFunc(slices.Clone(now.Pods), func(a, b Pod) bool { return a.Bucket == b.Bucket })
		fmt.Fprintf(out, "Shutting down %s in %s, the lowest priority first; it may take up to %s.\n",
			output.CountText(len(now.Pods), "pod"), output.CountText(len(buckets), "bucket"), duration.Text(now.Allowed))
	}
	for _, p := range now.Pods {
		old := podsBefore[p.Name]
		for i, c := range p.Containers {
			writeContainer(out, now, p, c, phaseOf(old, i))
		}
		if p.State != old.State && p.State != Ending {
			writeLine(out, now, p.Name, p.doing(!now.Began.IsZero()))
		}
	}
}

// writeContainer writes a line if the phase of a container is not the same as before. If a pod has only one
// container, the end of the container gets no line, because the line of the pod says the same.
func writeContainer(out *bytes.Buffer, now Snapshot, p Pod, c Container, before lifecycle.Phase) {
	isOnlyOne := len(p.Containers) == 1
	podSaysIt := isOnlyOne && c.Phase == lifecycle.PhaseEnded
	if c.Phase == before || c.Phase == "" || podSaysIt {
		return
	}
	name, doing := p.Name, c.doing()
	if !isOnlyOne {
		name += " " + c.Name
	}
	if c.Phase != lifecycle.PhaseEnded {
		doing += fmt.Sprintf(" (%s left)", duration.Text(p.Deadline.Sub(now.Now)))
	}
	writeLine(out, now, name, doing)
}

// writeLine writes a line. During a shutdown it begins with the time since the shutdown began.
func writeLine(out *bytes.Buffer, now Snapshot, name, doing string) {
	elapsed := ""
	if !now.Began.IsZero() {
		elapsed = fmt.Sprintf("%6s  ", duration.Text(max(now.Now.Sub(now.Began), 0)))
	}
	fmt.Fprintf(out, "%s%-24s %s\n", elapsed, name, doing)
}

// phaseOf returns the phase of a pod's i-th container, or "" if it has none.
func phaseOf(p Pod, i int) lifecycle.Phase {
	if i < len(p.Containers) {
		return p.Containers[i].Phase
	}
	return ""
}
