// Package podlist reads the pods of nodes from what kubectl gives: a List, or objects
// one after the other, as JSON or YAML. A list of any length goes through once, and of
// each pod only what decides on its shutdown is kept:
//
//	cluster := podlist.New()
//	err := cluster.Read(ctx, "pods.json", file)
//	for _, node := range cluster.Nodes() {
//		for _, pod := range node.Pods {
//			pod.Object() // a v1.Pod with the fields that matter here
//		}
//	}
//
// Pods that have ended or that no node has are counted and left out, and so is what is
// no pod. A PriorityClass in the list is kept: it gives pods of manifests, which name
// a class only, their priority. What the API server would fill in is filled in where
// it decides on something: the namespace "default", a grace period of 30 s.
//
// # Concurrency properties
//
// A Cluster is for one goroutine at a time. Read converts YAML on all processors and
// keeps the order of its input.
//
// # Failure modes
//
// Text that is neither JSON nor YAML, and a field of the wrong type, are errors that
// name the source, the place and, for YAML, the number of the item. A YAML list is
// split before it is parsed: an alias of an item to an anchor in another is not known.
// The list may have any length. Each object in it has 3 MiB at most, and its aliases stand
// for no more than twice its bytes; of one that is too large the rest is not read.
//
// # Testing
//
// Read takes any reader. Command clusterlist makes lists of any length.
package podlist
