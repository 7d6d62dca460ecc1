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

	poolLabels []string          // the labels of nodes that name their pool
	pools      map[string]string // by the name of the node
	nodes      map[string]*Node
}

// New makes an empty cluster.
func New() *Cluster {
	return &Cluster{
		Others: map[string]int{}, Classes: map[string]int32{}, pools: map[string]string{}, nodes: map[string]*Node{},
		// Those of the large clouds, of Karpenter and of the Cluster API.
		poolLabels: []string{
			"cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool", "karpenter.sh/nodepool",
			"doks.digitalocean.com/node-pool", "cluster.x-k8s.io/deployment-name", "node.kubernetes.io/pool",
		},
	}
}

// Nodes returns the nodes, sorted by name.
func (c *Cluster) Nodes() []*Node {
	return slices.SortedFunc(maps.Values(c.nodes), func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
}

// SetPoolLabel sets the label of nodes that names their pool, beside the usual ones. Call it
// before the first Read.
func (c *Cluster) SetPoolLabel(name string) { c.poolLabels = append(c.poolLabels, name) }

// PriorityOf returns the value of a priority class; false if the class was not read.
func (c *Cluster) PriorityOf(className string) (int32, bool) {
	value, ok := c.Classes[className]
	return value, ok
}

// addPod adds a pod to its node, unless it has ended or waits for one.
func (c *Cluster) addPod(o *object, static bool) {
	name := o.Spec.NodeName
	switch {
	case o.Status.Phase == "Succeeded" || o.Status.Phase == "Failed":
		c.Ended++
		return
	case name == "" && o.Status.Phase != "":
		c.Unscheduled++
		return
	case name == "":
		name = ThisNode
	}
	if c.nodes[name] == nil {
		c.nodes[name] = &Node{Name: name}
	}
	c.nodes[name].Pods = append(c.nodes[name].Pods, podOf(&o.Pod, static))
	c.Pods++
}
