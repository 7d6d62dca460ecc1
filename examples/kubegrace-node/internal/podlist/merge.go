package podlist

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// podName identifies a pod within one node.
type podName struct{ namespace, name string }

// Merge leaves each pod in the cluster once. A static pod may have been read in three forms: its manifest, the kubelet's
// form, and its mirror pod from the API server. Merge keeps the manifest if it was read, or else the kubelet's form, because
// the kubelet does not use the mirror pod. Manifests name no node, so their pods are read into [ThisNode]; Merge moves them
// to the nodes on which they run, if other nodes were read. Call Merge after the last Read.
func (c *Cluster) Merge() {
	for _, node := range c.nodes {
		c.mergeNode(node)
	}
	if thisNode := c.nodes[ThisNode]; thisNode != nil && len(c.nodes) > 1 {
		c.placeManifests(thisNode)
	}
}

// mergeNode removes the repeated pods of one node. If a pod was read as a mirror pod and in another form, it keeps the other
// form. Two pods without a name are never the same pod.
func (c *Cluster) mergeNode(node *Node) {
	indexInKept := make(map[podName]int, len(node.Pods))
	kept := node.Pods[:0]
	for _, pod := range node.Pods {
		name := podName{pod.Namespace, pod.Name}
		i, isKnown := indexInKept[name]
		isRepeated := isKnown && pod.Name != ""
		if !isRepeated {
			indexInKept[name] = len(kept)
			kept = append(kept, pod)
			continue
		}
		if staticpod.IsMirror(kept[i]) && !staticpod.IsMirror(pod) {
			kept[i] = pod
		}
		c.Pods--
		c.Repeated++
	}
	clear(node.Pods[len(kept):]) // so that the array, which kept shares, does not keep the removed pods in memory
	node.Pods = kept
}

// placeManifests moves the pods of manifests from thisNode ([ThisNode]) to the nodes on which they run. A manifest of which
// no node has a pod goes to the only other node that was read. With several other nodes it is not known where it runs, and
// it stays on ThisNode.
func (c *Cluster) placeManifests(thisNode *Node) {
	delete(c.nodes, ThisNode)
	placed := c.replaceByManifests(thisNode.Pods)
	c.Pods -= len(placed) // each was counted on ThisNode too
	thisNode.Pods = slices.DeleteFunc(thisNode.Pods, func(pod *v1.Pod) bool { return placed[podName{pod.Namespace, pod.Name}] })
	if len(c.nodes) == 1 {
		for _, onlyNode := range c.nodes {
			onlyNode.Pods = append(onlyNode.Pods, thisNode.Pods...)
		}
	} else if len(thisNode.Pods) > 0 {
		c.nodes[ThisNode] = thisNode
	}
}

// replaceByManifests replaces the static pods of all nodes by their manifests, and returns the names of the manifests that
// have replaced a pod. A kubelet names the pod of a manifest MANIFEST-NODE, so the manifest etcd replaces the pod etcd-n1 on
// node n1. A manifest may replace a pod on several nodes.
func (c *Cluster) replaceByManifests(manifestPods []*v1.Pod) (placed map[podName]bool) {
	manifests := map[podName]*v1.Pod{}
	for _, pod := range manifestPods {
		manifests[podName{pod.Namespace, pod.Name}] = pod
	}
	placed = map[podName]bool{}
	for _, node := range c.nodes {
		for i, pod := range node.Pods {
			name := podName{pod.Namespace, strings.TrimSuffix(pod.Name, "-"+node.Name)}
			manifest, hasManifest := manifests[name]
			if hasManifest && staticpod.IsOrMirrors(pod) {
				placed[name] = true
				c.Repeated++
				named := *manifest
				named.Name, named.OwnerReferences = pod.Name, pod.OwnerReferences
				node.Pods[i] = &named
			}
		}
	}
	return placed
}
