// Command clusterlist writes a made-up list of the pods of a cluster, in the form in which
// kubectl lists them. It is for measuring how fast large lists are read:
//
//	go run ./kubegrace-node/internal/clusterlist --nodes 5000 --pods 500000 | kubegrace-node plan -
//
// The pods of a node are spread over the list. Each is about 8 KB of JSON: containers with
// their settings, volumes, conditions and container statuses. The same arguments give the
// same list.
//
// # Concurrency properties
//
// The program has one goroutine.
//
// # Failure modes
//
// Wrong arguments, and an error of the output, give the exit status 1.
//
// # Testing
//
// The tests read the lists with package podlist.
package main
