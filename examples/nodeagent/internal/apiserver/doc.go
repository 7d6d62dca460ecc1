// Package apiserver reports a node and its pods to an API server, as soon as there is a usable
// kubeconfig:
//
//	client := apiserver.New("/etc/kubernetes/kubelet.conf", "node-1")
//	manager, err := shutdown.NewManager(shutdown.Options{Reporter: client, ...})
//	config, err := client.Load() // again until it succeeds
//
// # Concurrency properties
//
// All methods of a [Client] may be called concurrently.
//
// # Failure modes
//
// Until Load has succeeded every report fails, and the manager tries it again. Errors of Load name
// the file.
//
// # Testing
//
// The tests of package agent use a real API server where there is one.
package apiserver
