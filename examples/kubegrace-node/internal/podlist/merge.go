package podlist

// podName is the name of a pod within one node.
type podName struct{ namespace, name string }

// Merge counts each pod once: a pod that was given several times, and a static pod that was given by
// its manifest, by the kubelet's list and by its mirror pod. Of these the manifest or the kubelet's
// list counts, because the kubelet goes by it. Call it after the last Read.
func (c *Cluster) Merge() {
	c.placeManifests()
	for _, node := range c.nodes {
		c.mergeNode(node)
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
		case kept[at].Mirror && !pod.Mirror:
			kept[at] = pod
		}
		c.Pods--
		c.Repeated++
	}
	clear(node.Pods[len(kept):])
	node.Pods = kept
}

// placeManifests moves the static pods that name no node to the only node that has other pods. A kubelet names them
// after it. With several nodes it is not known which one has them.
func (c *Cluster) placeManifests() {
	here := c.nodes[ThisNode]
	if here == nil || len(c.nodes) != 2 {
		return
	}
	delete(c.nodes, ThisNode)
	for _, node := range c.nodes {
		known := map[podName]bool{}
		for _, pod := range node.Pods {
			known[podName{pod.Namespace, pod.Name}] = pod.Static
		}
		for _, pod := range here.Pods {
			if name := pod.Name + "-" + node.Name; known[podName{pod.Namespace, name}] {
				pod.Name = name
			}
			node.Pods = append(node.Pods, pod)
		}
	}
}
