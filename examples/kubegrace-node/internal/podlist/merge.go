package podlist

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/staticpod"
)

// podName is the name of a pod within one node.
type podName struct{ namespace, name string }

// Merge counts each pod once: a pod that was given several times, and a static pod that was given by
// its manifest, by the kubelet's list and by its mirror pod. Of these the manifest counts, or else the kubelet's
// list, because the kubelet goes by it. Call it after the last Read.
func (c *Cluster) Merge() {
	for _, node := range c.nodes {
		c.mergeNode(node)
	}
	if here := c.nodes[ThisNode]; here != nil && len(c.nodes) > 1 {
		c.placeManifests(here)
	}
}

// mergeNode counts the pods of a node once. Pods without a name are never the same.
func (c *Cluster) mergeNode(node *Node) {
	known := make(map[podName]int, len(node.Pods))
	kept := node.Pods[:0]
	for _, pod := range node.Pods {
		at, isKnown := known[podName{pod.Namespace, pod.Name}]
		switch {
		case !isKnown || pod.Name == "":
			known[podName{pod.Namespace, pod.Name}] = len(kept)
			kept = append(kept, pod)
			continue
		case staticpod.IsMirror(kept[at]) && !staticpod.IsMirror(pod):
			kept[at] = pod
		}
		c.Pods--
		c.Repeated++
	}
	clear(node.Pods[len(kept):])
	node.Pods = kept
}

// placeManifests moves the static pods of manifests, which name no node, to the nodes on which they run: each to all nodes
// that have a pod of its name and theirs, as a kubelet names it, and the others to the only node that there is. With
// several nodes it is not known where the others run, and they stay on [ThisNode].
func (c *Cluster) placeManifests(here *Node) {
	delete(c.nodes, ThisNode)
	manifests, placed := map[podName]*v1.Pod{}, map[podName]bool{}
	for _, pod := range here.Pods {
		manifests[podName{pod.Namespace, pod.Name}] = pod
	}
	for _, node := range c.nodes {
		for i, pod := range node.Pods {
			name := podName{pod.Namespace, strings.TrimSuffix(pod.Name, "-"+node.Name)}
			manifest, found := manifests[name]
			if !found || !staticpod.IsOrMirrors(pod) {
				continue
			}
			placed[name] = true
			c.Repeated++
			named := *manifest
			named.Name, named.OwnerReferences = pod.Name, pod.OwnerReferences
			node.Pods[i] = &named
		}
	}
	c.Pods -= len(placed)
	here.Pods = slices.DeleteFunc(here.Pods, func(pod *v1.Pod) bool { return placed[podName{pod.Namespace, pod.Name}] })
	if len(c.nodes) == 1 {
		for _, node := range c.nodes {
			node.Pods = append(node.Pods, here.Pods...)
		}
	} else if len(here.Pods) > 0 {
		c.nodes[ThisNode] = here
	}
}
