// Command shutdownplan shows what the shutdown of a node would do to its pods, before it
// happens:
//
//	kubectl get pods -A -o json | shutdownplan --config kubelet.yaml --limit 30s
//
// It reads pods as kubectl lists them, of one node or of a whole cluster, or from manifests. It
// plans what the stock kubelet does, or with --agent kubegrace an agent with package shutdown, and
// shows the buckets in their order, what each pod asks for and gets, when it is told to stop and when it
// has ended, which pods are cut short and why, and what to change so that none is.
//
// It prints a table (-o table), a chart (-o chart), a page with a timeline (-o html), or a
// nodeplan.Document for programs (-o json, -o yaml). --help lists all flags.
//
// shutdownplan node says what would happen on this machine at its next shutdown, and why; package
// machine looks at it.
//
// # Concurrency properties
//
// Everything has one goroutine.
//
// # Failure modes
//
// The exit status is 2 if a pod would be cut short, so that a pipeline can stop (--fail-on), and 1 if
// something is wrong. That of shutdownplan node is a machine.Status.
//
// # Testing
//
// Package command is the whole program except for its exit status. Its tests compare the
// output with golden files.
package main
