// Package e2e proves the agent on a whole machine: a Debian with a systemd and a
// logind of its own is booted, runs the agent as a unit, and is told to power off,
// while the agent's pods are containers of a real containerd on the host, whose
// socket the machine is shown. Judges are containerd's own records and the machine's
// journal, not the agent.
//
//	make e2e
//
// is run as root on a Debian 12 with the packages that it names where one is missing.
// The machines are a Debian 12 with systemd 252, whose pods run in Debian's containerd,
// and a Debian 13 with systemd 257, whose pods run in the containerd that the Makefile
// builds. The first run fetches their packages into the folder .cache of the checkout,
// which takes some minutes, as building containerd does.
//
// # Concurrency properties
//
// Nothing is shared between tests, nor between runs at the same time, but the cache
// and the processors.
//
// # Failure modes
//
// Where a program is missing make e2e says so and fails; with go test -tags e2e alone the
// tests that need it are skipped.
// A test that fails prints what the machine printed. Containers, the machine and
// their mounts are gone when a test ends, also when it is killed.
//
// # Testing
//
// Package machine has tests of its own, which show that the machine's journal tells
// of a delay lock that was not released.
package e2e
