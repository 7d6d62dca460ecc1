// Command processagent is a node agent of one file. It runs the pods of a folder of manifests
// as processes of this machine:
//
//	go run ./processagent processagent/pods
//
// It ends the pods as a kubelet does when it gets SIGTERM or SIGINT and when the machine shuts
// down. README.md explains main.go section by section.
//
// # Concurrency properties
//
// The list of containers never changes after the start, so it needs no lock. One goroutine for
// each container waits for its process.
//
// # Failure modes
//
// A wrong manifest, or a folder that is not there, ends the agent before anything runs. A container that cannot be started is
// logged. Without systemd the agent logs that it is not connected to the host, and drains on
// SIGTERM and SIGINT only.
//
// # Testing
//
// main_test.go runs the agent with real processes and without a system bus,
// shutdown_linux_test.go with a real bus and a real systemd-logind.
package main
