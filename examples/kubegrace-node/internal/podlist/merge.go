package podlist

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// podName identifies a pod within one node.
type podName struct{ namespace, name string }

// Merge leaves each pod in the cluster once. A pod may have been read several times, and a static pod in up to
// three forms: its manifest, the kubelet's list of pods, and its mirror pod from the API server. The manifest
// is kept if it was read, or else the kubelet's form, because the kubelet uses these and not the mirror pod.
// Manifests name no node, so their pods are read into [ThisNode]. If other nodes were read too, Merge moves the
// pods to the nodes on which they run. Call Merge after the last Read.
func (c *Cluster) Merge() {
	for _, node := range c.nodes {
		c.mergeNode(node)
	}
	if thisNode := c.nodes[ThisNode]; thisNode != nil && len(c.nodes) > 1 {
		c.placeManifests(thisNode)
	}
}

// mergeNode removes the repeated pods of one node. Of a mirror pod and another form of the same pod it keeps
// the other form. Two pods without a name are never the same pod.
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

// placeManifests moves the pods of manifests from thisNode ([ThisNode]) to the nodes on which they run. A
// kubelet names the pod of a manifest MANIFEST-NODE, so the manifest etcd replaces the pod etcd-n1 on node n1;
// a manifest may replace a pod on several nodes. If no node has such a pod, the manifest goes to the only
// other node that was read. With several other nodes it is not known where it runs, and it stays on ThisNode.
func (c *Cluster) placeManifests(thisNode *Node) {
	delete(c.nodes, ThisNode)
	manifests, placed := map[podName]*v1.Pod{}, map[podName]bool{}
	for _, pod := range thisNode.Pods {
		manifests[podName{pod.Namespace, pod.Name}] = pod
	}
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
	c.Pods -= len(placed) // each was counted on ThisNode too
	thisNode.Pods = slices.DeleteFunc(thisNode.Pods, func(pod *v1.Pod) bool { return placed[podName{pod.Namespace, pod.Name}] })
	if len(c.nodes) == 1 {
		for _, node := range c.nodes {
			node.Pods = append(node.Pods, thisNode.Pods...)
		}
	} else if len(thisNode.Pods) > 0 {
		c.nodes[ThisNode] = thisNode
	}
}
