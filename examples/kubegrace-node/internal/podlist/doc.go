// Package podlist reads the pods of nodes from the output of kubectl: a List, or several objects
// one after the other, as JSON or YAML:
//
//	cluster := podlist.New()
//	err := cluster.Read("pods.json", file)
//	cluster.Merge()
//	for _, node := range cluster.Nodes() {
//		fmt.Println(node.Name, len(node.Pods))
//	}
//
// Pods that have ended and pods without a node are counted and left out. Objects of other kinds are left
// out too, but the names of their kinds are kept. The values of PriorityClasses are kept, because a pod of a
// manifest has the name of a class and no priority. Missing fields get the API server's defaults: the
// namespace "default" and a grace period of 30 s.
//
// # Concurrency properties
//
// A Cluster is for one goroutine.
//
// # Failure modes
//
// A text that is neither JSON nor YAML is an error, and so is a field of the wrong type. The error names
// the source, the number of the document if the source has several, the item of a list, and the field. An
// unknown field is no error, because a newer API server may have it. YAML is read into memory as a whole;
// of JSON one object at a time, which may be a list of all pods.
//
// # Testing
//
// Read takes an io.Reader.
package podlist
