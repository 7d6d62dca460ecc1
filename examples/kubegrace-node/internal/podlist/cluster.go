package podlist

import (
	"maps"
	"slices"
	"strings"
)

// ThisNode is the name of the node for pods of manifests, which do not name one.
const ThisNode = "(this node)"

// Node is a node with its pods.
type Node struct {
	Name string
	// Pool is the name of its pool of nodes; "": not known. Merge sets it.
	Pool string
	// Pods are in the order in which they were read.
	Pods []Pod
}

// Cluster holds the pods that were read. Make one with [New].
type Cluster struct {
	// Pods counts the pods of all nodes.
	Pods int
	// Objects counts all objects that were read, including lists.
	Objects int
	// Ended counts the pods that are left out because they have ended, and Unscheduled those
	// that are left out because they have no node yet.
	Ended, Unscheduled int
	// Repeated counts the pods that were given again, and Mirrors the static pods that were given
	// again in another form, such as their mirror pods.
	Repeated, Mirrors int
	// Beside counts the nodes and the priority classes.
	Beside int
	// Others counts the objects that are neither a pod nor a priority class, by kind.
	Others map[string]int
	// Classes has the values of the priority classes, by name.
	Classes map[string]int32

	poolLabel string            // a label of nodes that names their pool, beside the usual ones
	pools     map[string]string // by the name of the node
	nodes     map[string]*Node
	interned  map[string]string // see intern
}

// New makes an empty cluster.
func New() *Cluster {
	return &Cluster{pools: map[string]string{}, Others: map[string]int{}, Classes: map[string]int32{}, nodes: map[string]*Node{}, interned: map[string]string{}}
}

// Nodes returns the nodes, sorted by name.
func (c *Cluster) Nodes() []*Node {
	return slices.SortedFunc(maps.Values(c.nodes), func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
}

// SetPoolLabel sets the label of nodes that names their pool, beside the usual ones. Call it
// before the first Read.
func (c *Cluster) SetPoolLabel(name string) { c.poolLabel = name }

// isPoolLabel reports whether a label of a node names its pool: those of the large clouds, of
// Karpenter and of the Cluster API, and the cluster's own.
func (c *Cluster) isPoolLabel(name string) bool {
	switch name {
	case "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool", "karpenter.sh/nodepool",
		"doks.digitalocean.com/node-pool", "cluster.x-k8s.io/deployment-name", "node.kubernetes.io/pool":
		return true
	}
	return name == c.poolLabel && name != ""
}

// PriorityOf returns the value of a priority class; false if the class was not read.
func (c *Cluster) PriorityOf(className string) (int32, bool) {
	value, ok := c.Classes[className]
	return value, ok
}

// intern returns a text as a string. Equal texts share one string, because many pods have the
// same namespace, node or class.
func (c *Cluster) intern(text []byte) string {
	if known, ok := c.interned[string(text)]; ok { // the compiler looks this up without a copy
		return known
	}
	known := string(text)
	c.interned[known] = known
	return known
}

// add adds an object that is no list. It keeps priority classes and the pods of nodes, and
// counts all others.
func (c *Cluster) add(o *object) {
	if o.kind == kindPriorityClass || o.kind == kindNode {
		c.Beside++
	}
	switch {
	case o.kind == kindPriorityClass:
		c.Classes[o.pod.Name] = o.value
	case o.kind == kindNode:
		if o.pool != "" {
			c.pools[o.pod.Name] = o.pool
		}
	case o.kind != kindPod:
		c.Others[o.kind]++
	case o.phase == "Succeeded" || o.phase == "Failed":
		c.Ended++
	case o.node == "" && o.phase != "":
		c.Unscheduled++
	default:
		c.addPod(o)
	}
}

func (c *Cluster) addPod(o *object) {
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
