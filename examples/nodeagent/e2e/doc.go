// Package e2e proves the agent on a whole machine: a Debian with a systemd and a
// logind of its own is booted, runs the agent as a unit, and is told to power off,
// while the agent's pods are containers of a real containerd on the host, whose
// socket the machine is shown. Judges are containerd's own records and the machine's
// journal, not the agent.
//
//	go test -tags e2e ./nodeagent/e2e/...
//
// is run in the folder of the examples, as root, on a Debian 12 with the packages
// busybox-static, containerd, debootstrap, runc and systemd-container. The first run
// fetches the machine's packages into the folder .cache of the checkout (some
// minutes), every other one takes less than a minute.
//
// # Concurrency properties
//
// Nothing is shared between tests, nor between runs at the same time, but the cache
// and the processors.
//
// # Failure modes
//
// Where a program is missing the tests are skipped, or fail with KUBEGRACE_NEED_ALL=1.
// A test that fails prints what the machine printed. Containers, the machine and
// their mounts are gone when a test ends, also when it is killed.
//
// # Testing
//
// Package machine has tests of its own, which show that the machine's journal tells
// of a delay lock that was not released.
package e2e
