// Command clusterlist writes the pods of a cluster that does not exist, as kubectl
// would list them, for measuring what reads such a list:
//
//	go run ./shutdownplan/internal/clusterlist --nodes 5000 --pods 500000 | shutdownplan -
//
// The pods of a node are not neighbours in the list, and each is about 8 KB of JSON:
// containers with their settings, volumes, conditions and container statuses. Equal
// arguments give equal lists.
package main
