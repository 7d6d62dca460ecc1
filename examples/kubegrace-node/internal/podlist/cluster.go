package podlist

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// ThisNode is the name of the node that gets the pods of manifests, because a manifest does not name a node.
const ThisNode = "(this node)"

// Node is a node with its pods.
type Node struct {
	Name string
	// Pods are in the order in which they were read.
	Pods []*v1.Pod
}

// Cluster holds the pods that were read, by node. Make one with [New].
type Cluster struct {
	// Pods counts the pods of all nodes.
	Pods int
	// Objects counts all objects that were read, including lists.
	Objects int
	// Ended counts the pods that are left out because they have ended, and Unscheduled those
	// that are left out because they have no node yet.
	Ended, Unscheduled int
	// Repeated counts how often a pod was given again. The mirror pod of a static pod and the manifest of the
	// same pod count as one pod that was given twice.
	Repeated int
	// Others is the set of the kinds of all objects that are neither a pod nor a priority class.
	Others map[string]bool
	// Classes has the values of the priority classes, by name.
	Classes map[string]int32

	nodes map[string]*Node
}

// New makes an empty cluster.
func New() *Cluster {
	return &Cluster{Others: map[string]bool{}, Classes: map[string]int32{}, nodes: map[string]*Node{}}
}

// Nodes returns the nodes, sorted by name.
func (c *Cluster) Nodes() []*Node {
	return slices.SortedFunc(maps.Values(c.nodes), func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
}

// PriorityOf returns the value of a priority class. isKnown is false if the class was not read.
func (c *Cluster) PriorityOf(className string) (value int32, isKnown bool) {
	value, isKnown = c.Classes[className]
	return value, isKnown
}

// Add adds a pod to its node, with the API server's defaults for a missing namespace and grace period. A pod
// that has ended, or that still waits for a node, is only counted.
func (c *Cluster) Add(pod *v1.Pod) {
	phase, node := pod.Status.Phase, cmp.Or(pod.Spec.NodeName, ThisNode)
	switch {
	case phase == v1.PodSucceeded || phase == v1.PodFailed:
		c.Ended++
		return
	case pod.Spec.NodeName == "" && phase != "": // a manifest has no phase, so this is a pod that waits for a node
		c.Unscheduled++
		return
	}
	pod.Namespace = cmp.Or(pod.Namespace, metav1.NamespaceDefault)
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(v1.DefaultTerminationGracePeriodSeconds))
	}
	if c.nodes[node] == nil {
		c.nodes[node] = &Node{Name: node}
	}
	c.nodes[node].Pods = append(c.nodes[node].Pods, pod)
	c.Pods++
}
