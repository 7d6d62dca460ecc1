// Package containerdtest runs a private, real containerd for a test:
//
//	server := containerdtest.Start(t, containerdtest.Image{
//		Name:    "nginx:1.16.1",
//		Command: []string{"/bin/sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"},
//	})
//	runtime, err := criruntime.Dial(t.Context(), server.Endpoint(), criruntime.Options{})
//
// It needs root and the Debian packages containerd, runc and busybox-static; without them
// the test is skipped (package need). [Each] runs a test with that containerd and with
// 2.3 and 2.4. "make containerd" builds those, and make sets KUBEGRACE_CONTAINERD to the
// folder that holds them. Tests need neither a registry nor a network: every image
// contains the host's static busybox; images differ in name, command and stop signal.
//
// # Concurrency properties
//
// Several tests may run at a time; each server has a folder, a PID namespace and a mount
// namespace of its own. The methods of a [Server] may be called concurrently.
//
// # Failure modes
//
// If containerd does not start, the test fails with containerd's output. At the end of a
// test its pods are removed, and then the first process of the PID namespace is killed.
// The kernel then kills containerd, all shims and all containers, and removes their
// mounts. If the test binary is killed, the same happens without the removal of the pods:
// the folder in /tmp and the cgroups of the containers stay. [Server.Kill] kills
// containerd alone, as a crash would.
//
// # Testing
//
// The package's own test starts a server and checks that nothing of it is left.
//
// # Stability
//
// For tests: what is exported may change in a patch release, and a program needs none of it.
package containerdtest
