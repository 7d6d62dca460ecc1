// Package containerdtest runs a private containerd for a test:
//
//	server := containerdtest.Start(t, containerdtest.Image{
//		Name:    "nginx:1.16.1",
//		Command: []string{"/bin/sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"},
//	})
//	runtime, err := criruntime.Dial(t.Context(), server.Endpoint(), criruntime.Options{})
//
// It needs root and the Debian packages containerd, runc and busybox-static. Without them the test is skipped, or
// fails if KUBEGRACE_NEED_ALL=1 is set. [Each] runs a test with the installed containerd, and with containerd 2.3 and
// 2.4 if the environment variable KUBEGRACE_CONTAINERD names the folder in which "make containerd" has built them. No
// registry or network is needed: every image contains the host's static busybox.
//
// # Failures
//
// If containerd does not start, the test fails with containerd's output. At the end of a test its pods are
// removed and containerd, shims and containers are killed. If the test binary is killed, the folder in
// /tmp and the containers' cgroups are left over.
//
// # Concurrency
//
// Tests may run concurrently: each server has its own folder, PID namespace and mount namespace. The
// methods of a [Server] may be called concurrently.
//
// # Stability
//
// For tests: any release may change exported names.
package containerdtest
