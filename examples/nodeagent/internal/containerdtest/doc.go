// Package containerdtest runs a private, real containerd for a test:
//
//	server := containerdtest.Start(t, containerdtest.Image{
//		Name:    "nginx:1.16.1",
//		Command: []string{"/bin/sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"},
//	})
//	runtime, err := cri.New(t.Context(), server.Endpoint(), cri.Options{})
//
// It needs root and the Debian packages containerd, runc and busybox-static; the
// test is skipped where they are missing, as package need says. [Each] runs a test with
// that containerd and with two newer ones, 2.2 and 2.4: make containerd builds them, and
// make sets KUBEGRACE_CONTAINERD to the folder that holds them. There is no registry
// and no network: every image has the host's static busybox in it, and is told from
// the others by its name, its command and its stop signal.
//
// # Concurrency properties
//
// Tests may run several at a time; each has its own folder and its own namespaces of
// processes and mounts. The methods of a [Server] may be called concurrently.
//
// # Failure modes
//
// What keeps containerd from starting ends the test, with containerd's own output.
// At the end of a test its pods are removed, then containerd is killed, and with it,
// as the first process of their namespace, every shim and container that may be
// left; their mounts go with the namespace. The same happens when the test binary is
// killed. Only the folder in /tmp, and the cgroups of containers that ran, are then
// left behind. [Server.Kill] ends containerd alone, as a crash does.
//
// # Testing
//
// The package's own test starts one and looks for what is left of it.
package containerdtest
