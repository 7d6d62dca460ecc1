package podlist

import "strings"

// podName is the name of a pod within one node.
type podName struct{ namespace, name string }

// Merge counts each pod once: a pod that was given several times, and a static pod that was given by
// its manifest, by the kubelet's list and by its mirror pod. Of these the manifest or the kubelet's
// list counts, because the kubelet goes by it. Call it after the last Read.
func (c *Cluster) Merge() {
	for _, node := range c.nodes {
		node.Pool = c.pools[node.Name]
		c.mergeNode(node)
	}
	c.placeManifests()
}

// mergeNode counts the pods of a node once. Pods without a name are never the same.
func (c *Cluster) mergeNode(node *Node) {
	known := make(map[podName]int, len(node.Pods))
	kept := node.Pods[:0]
	for _, pod := range node.Pods {
		at, isKnown := known[podName{pod.Namespace, pod.Name}]
		if !isKnown || pod.Name == "" {
			known[podName{pod.Namespace, pod.Name}] = len(kept)
			kept = append(kept, pod)
			continue
		}
		c.Pods--
		if kept[at].Mirror == pod.Mirror {
			c.Repeated++
			continue
		}
		c.Mirrors++
		if kept[at].Mirror {
			kept[at] = pod
		}
	}
	clear(node.Pods[len(kept):])
	node.Pods = kept
}

// placeManifests moves the static pods that no node names to the node whose pods they are: the one
// that has a pod of their name with the node's name behind it, as a kubelet names them. If there is
// only one node, all of them are its pods.
func (c *Cluster) placeManifests() {
	here := c.nodes[ThisNode]
	if here == nil || len(c.nodes) == 1 {
		return
	}
	type place struct {
		node *Node
		at   int
	}
	places := map[podName][]place{} // by the name in the manifest
	var only *Node
	for _, node := range c.nodes {
		if node == here {
			continue
		}
		only = node
		for i := range node.Pods {
			if name, ok := strings.CutSuffix(node.Pods[i].Name, "-"+node.Name); ok && node.Pods[i].Static {
				key := podName{node.Pods[i].Namespace, name}
				places[key] = append(places[key], place{node, i})
			}
		}
	}
	kept := here.Pods[:0]
	for _, pod := range here.Pods {
		found := places[podName{pod.Namespace, pod.Name}]
		switch {
		case !pod.Static || len(found) == 0 && len(c.nodes) > 2:
			kept = append(kept, pod)
			continue
		case len(found) == 0:
			only.Pods = append(only.Pods, pod)
			continue
		}
		c.Pods--
		c.Mirrors++
		if mirror := &found[0].node.Pods[found[0].at]; len(found) == 1 && mirror.Mirror {
			pod.Name = mirror.Name
			*mirror = pod
		}
	}
	if here.Pods = kept; len(kept) == 0 {
		delete(c.nodes, ThisNode)
	}
}
