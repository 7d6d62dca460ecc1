package nodeplan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// MaxWorst is how many groups of each kind a summary names at most.
const MaxWorst = 10

// The kinds of groups by which losses are summed up.
const (
	ByWorkload  = "workload"
	ByNamespace = "namespace"
	ByPool      = "pool"
	ByPriority  = "priority"
	ByNode      = "node"
)

// Groupings returns the kinds of groups, those first with which one begins.
func Groupings() []string { return []string{ByWorkload, ByNamespace, ByPool, ByPriority, ByNode} }

// group identifies a group of pods; kind and namespace are "" where a name says enough.
type group struct{ by, namespace, kind, name string }

// text returns the name of the group.
func (g group) text() string {
	return strings.Join(slices.DeleteFunc([]string{g.namespace, g.kind, g.name}, func(part string) bool { return part == "" }), "/")
}

// groupsOf returns the groups of a pod, the first of which is its workload.
func groupsOf(pod *Pod, node *podlist.Node) []group {
	source := pod.source
	workload := group{ByWorkload, pod.Namespace, strings.ToLower(source.OwnerKind), source.OwnerName}
	switch {
	case source.OwnerName == "":
		workload.kind, workload.name = "pod", pod.Name
	case source.OwnerKind == "Node":
		workload.kind, workload.name = "static pod", strings.TrimSuffix(pod.Name, "-"+source.OwnerName)
	}
	groups := []group{workload, {by: ByNamespace, name: pod.Namespace}, {by: ByPriority, name: strconv.Itoa(int(pod.Priority))}, {by: ByNode, name: node.Name}}
	if node.Pool != "" {
		groups = append(groups, group{by: ByPool, name: node.Pool})
	}
	return groups
}

// summarizer sums up planned nodes.
type summarizer struct {
	summary Summary
	groups  map[group]*Loss
	asks    map[ask]int     // how many pods ask for it
	hooks   map[group]int64 // for each workload whose preStop hook is longer than its grace period, the hook
}

// ask is what pods of a workload ask for.
type ask struct {
	workload group
	bucket   int // the index of their bucket
	critical bool
	seconds  int64
}

// Summarize plans all nodes and sums them up.
func (s Settings) Summarize(nodes []*podlist.Node) Summary {
	z := &summarizer{groups: map[group]*Loss{}, asks: map[ask]int{}, hooks: map[group]int64{}}
	for _, node := range nodes {
		z.add(s.Plan(node), node)
	}
	z.summary.Losses = z.losses()
	if z.summary.CutShort > 0 {
		coverage := s.coverage(z.asks)
		z.summary.Outliers = coverage.outliers(z.asks)
		z.summary.Proposals = s.proposals(z, coverage, nodes)
	}
	return z.summary
}

// add adds a planned node, which was made from source.
func (z *summarizer) add(n Node, source *podlist.Node) {
	z.summary.NodeCount++
	z.summary.PodCount += n.PodCount
	z.summary.CutShort += n.CutShort
	z.summary.LostSeconds = saturatingAdd(z.summary.LostSeconds, n.LostSeconds)
	for i := range n.Buckets {
		for k := range n.Buckets[i].Pods {
			pod := &n.Buckets[i].Pods[k]
			workload := z.addPod(pod, source)
			z.asks[ask{workload, i, pod.Priority >= plan.SystemCriticalPriority, pod.OwnSeconds}]++
		}
	}
}

// addPod adds a pod to its groups, and returns its workload.
func (z *summarizer) addPod(pod *Pod, node *podlist.Node) group {
	groups := groupsOf(pod, node)
	for _, key := range groups {
		loss := z.groups[key]
		if loss == nil {
			loss = &Loss{By: key.by}
			z.groups[key] = loss
		}
		loss.PodCount++
		if pod.CutShort {
			loss.CutShort++
		}
		loss.LostSeconds = saturatingAdd(loss.LostSeconds, pod.lostSeconds())
	}
	for _, hook := range pod.Hooks {
		if hook.Seconds != nil && *hook.Seconds > pod.OwnSeconds {
			z.hooks[groups[0]] = max(z.hooks[groups[0]], *hook.Seconds)
		}
	}
	return groups[0]
}

// losses returns the groups that lose most, the worst of each kind first.
func (z *summarizer) losses() (all []Loss) {
	for _, by := range Groupings() {
		var losses []Loss
		for key, loss := range z.groups {
			if key.by == by && loss.CutShort > 0 {
				loss.Name = key.text()
				losses = append(losses, *loss)
			}
		}
		slices.SortFunc(losses, func(a, b Loss) int {
			return cmp.Or(cmp.Compare(b.LostSeconds, a.LostSeconds), cmp.Compare(b.CutShort, a.CutShort), cmp.Compare(a.Name, b.Name))
		})
		all = append(all, losses[:min(len(losses), MaxWorst)]...)
	}
	return all
}
