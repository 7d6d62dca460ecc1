package podlist

import (
	"maps"
	"slices"
	"strings"
)

// ThisNode is the name of the node that pods without one belong to: those of
// manifests.
const ThisNode = "(this node)"

// Node is a node with its pods, in the order in which they were read.
type Node struct {
	Name string
	Pods []Pod
}

// Cluster is what was read so far.
type Cluster struct {
	// Pods counts those that were kept.
	Pods int
	// Objects counts everything that was read, lists too.
	Objects int
	// Ended counts the pods that were left out because they have ended, Unscheduled
	// those that no node has yet.
	Ended, Unscheduled int
	// Others counts the objects that are neither a pod nor a priority class, by kind.
	Others map[string]int
	// Classes has the priority classes by name.
	Classes map[string]int32

	nodes map[string]*Node
	texts map[string]string // one copy of each text that many pods share
}

// New makes an empty cluster.
func New() *Cluster {
	return &Cluster{Others: map[string]int{}, Classes: map[string]int32{}, nodes: map[string]*Node{}, texts: map[string]string{}}
}

// Nodes gives the nodes by name.
func (c *Cluster) Nodes() []*Node {
	return slices.SortedFunc(maps.Values(c.nodes), func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
}

// PriorityOf gives the value of a priority class that was read.
func (c *Cluster) PriorityOf(className string) (int32, bool) {
	value, ok := c.Classes[className]
	return value, ok
}

// shared gives the one copy of a text.
func (c *Cluster) shared(text []byte) string {
	if known, ok := c.texts[string(text)]; ok { // looked up without a copy
		return known
	}
	known := string(text)
	c.texts[known] = known
	return known
}

// add takes in an object of a list.
func (c *Cluster) add(o *object) {
	switch {
	case o.kind == kindPriorityClass:
		c.Classes[o.pod.Name] = o.value
	case o.kind != kindPod:
		c.Others[o.kind]++
	case o.phase == "Succeeded" || o.phase == "Failed":
		c.Ended++
	case o.node == "" && o.phase != "":
		c.Unscheduled++
	default:
		c.keep(o)
	}
}

func (c *Cluster) keep(o *object) {
	name := o.node
	if name == "" {
		name = ThisNode
	}
	node := c.nodes[name]
	if node == nil {
		node = &Node{Name: name}
		c.nodes[name] = node
	}
	node.Pods = append(node.Pods, o.pod)
	c.Pods++
}
