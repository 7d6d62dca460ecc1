// Package machine boots a whole machine for a test. The machine has its own systemd, logind and D-Bus, and can
// really power off:
//
//	m := machine.New(t, machine.Trixie)
//	m.WriteFile(t, "/etc/agent.yaml", 0o644, config)
//	m.Enable(t, "agent.service", unit)
//	m.Boot(t)
//	m.AwaitActive(t, "agent.service")
//	m.Run(t, "systemctl", "poweroff")
//	m.AwaitPowerOff(t)
//	for _, entry := range m.Journal(t) {
//		...
//	}
//
// A machine is a container of systemd-nspawn. Its root file system is a Debian 12 or 13
// with little more than systemd, under an overlay that belongs to the test. debootstrap
// makes the Debian once; the folder .cache of the checkout keeps it. This needs root, the
// Debian packages systemd-container and debootstrap, and, the first time, Debian's
// archive. If a program is missing, the test is skipped (package need).
//
// # Concurrency properties
//
// Several machines may run at a time, also in several processes: the cached Debian is
// only read, and appears in the cache in one step. The methods of one [Machine] are for
// one goroutine.
//
// # Failure modes
//
// If a machine does not boot or a unit fails, the test ends and prints the console of the
// machine. A machine that still runs at the end of its test, or when the test binary is
// killed, is killed, and its mounts vanish with its namespace. If the test binary was
// killed, the machine's disk and empty cgroups stay. Run starts a command only if it can enter
// the machine: a power off must never run on the host.
//
// # Testing
//
// The package's tests (build tag e2e) boot each release, and power off while a delay lock is held for longer
// than logind waits.
package machine
