// Command processagent is a node agent in one file. It runs the pods of a folder of manifests as processes
// of this machine:
//
//	go run ./processagent processagent/pods
//
// It drains the pods as a kubelet does, on SIGTERM or SIGINT and when the machine shuts down. README.md
// explains main.go section by section.
//
// # Failures
//
// An invalid manifest or a missing folder ends the agent before it starts a container. A container that cannot
// be started is logged. Without systemd the agent logs that it is not connected to the host, and drains on SIGTERM
// and SIGINT only.
//
// # Concurrency
//
// The list of containers never changes after the start, so it needs no lock. Each container has a goroutine that
// waits for its process.
//
// # Testing
//
// main_test.go runs the agent with real processes and without a system bus. shutdown_linux_test.go adds a real bus
// and a real systemd-logind.
package main
