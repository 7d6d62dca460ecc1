// Package machine boots a whole machine for a test, with a systemd, a logind and a
// D-Bus of its own, that really powers off:
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
// It is a container of systemd-nspawn: Debian 12 or 13 with nothing but systemd, made once by
// debootstrap and kept in the folder .cache of the checkout, with a layer on top that
// belongs to the test. It needs root, the Debian packages systemd-container and
// debootstrap, and, the first time, Debian's archive; the test is skipped where the
// programs are missing, as package need says.
//
// # Concurrency properties
//
// Tests may run several machines at a time, also in several processes: the tree below
// them is only read, and it appears in the cache in one step. The methods of one
// [Machine] are for one goroutine.
//
// # Failure modes
//
// A machine that does not boot, or a unit that fails, ends the test, with what the
// machine printed. A machine that still runs at the end of its test, or when the test
// binary is killed, is killed, and its mounts go with its namespace; in the second
// case its disk and its empty cgroups are left. Commands are only run in a process
// that is seen to be in the machine.
//
// # Testing
//
// The package's own tests, with the build tag e2e, hold a delay lock of logind as an
// agent does, and one for too long.
package machine
