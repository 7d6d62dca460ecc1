// Package e2e tests the agent on whole machines. A test boots a Debian with its own systemd and logind, in
// which the agent runs as a unit, and then powers the machine off. The pods run in a real containerd on the
// host, whose socket is mounted into the machine. The test starts them in place of a kubelet. It judges the
// agent by the exits that containerd recorded and by the journal of the machine, not by the agent's own
// report. The output of kubegrace-node status is compared with the table of COMPARED.md.
//
//	m, server, containers := bootAgent(t, on, nil)
//	asked, exits := powerOff(t, m, server, containers)
//	checkBuckets(t, asked, exits)
//
// Run them as root on a Debian 12 with
//
//	make e2e
//
// which names the packages that are missing. The machines are a Debian 12 with systemd
// 252, with the containerd of Debian 12, and a Debian 13 with systemd 257, with the
// containerd 2.3 that "make containerd" builds. The first run fetches Debian packages and
// builds containerd, which takes some minutes; the folder .cache of the checkout keeps
// both.
//
// # Concurrency properties
//
// Tests run at the same time, and so may several runs of the tests. They share only the cache and the
// processors.
//
// # Failure modes
//
// If a program is missing, make e2e names it and fails; go test -tags e2e skips the tests
// that need it. A test that fails prints the console of its machine. When a test ends or
// is killed, its containers, its machine and their mounts are removed.
//
// # Testing
//
// The tests of package machine show that a machine's journal has an entry if a delay lock was not released.
// The tests here rely on that.
package e2e
