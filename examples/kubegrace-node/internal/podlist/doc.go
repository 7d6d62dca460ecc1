// Package podlist reads the pods of nodes from the output of kubectl: a List, or objects that
// follow each other, as JSON or YAML. It keeps only the fields of a pod that decide on its
// shutdown:
//
//	cluster := podlist.New()
//	err := cluster.Read("pods.json", file)
//	cluster.Merge()
//	for _, node := range cluster.Nodes() {
//		fmt.Println(node.Name, len(node.Pods))
//	}
//
// Pods that have ended and pods without a node are counted and left out, and of objects of other kinds
// the kinds are kept. The values of PriorityClasses are kept, because pods of manifests have a class name and
// no priority. Missing fields get the API server's defaults: the namespace "default" and a
// grace period of 30 s.
//
// # Concurrency properties
//
// A Cluster is for one goroutine.
//
// # Failure modes
//
// A text that is neither JSON nor YAML and a field of the wrong type are errors, which name
// the source, the number of the document if it has several, the item of a list, and the
// field. An unknown field is none, because a newer API server may have it. The whole input is in
// memory while it is read.
//
// # Testing
//
// Read takes an io.Reader.
package podlist
