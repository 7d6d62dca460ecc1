// Package logindhost runs a real D-Bus and a real systemd-logind for tests. A [Bus] is a dbus-daemon, to which
// logindfake.StartLogin1 and StartSystemd1 add scripted services. A [Host] is a systemd-logind in the
// namespaces of [InNamespace]. An [FDStore] is a fake of systemd's FD store for the agent's unit.
//
// Call the methods of a Bus or a Host one at a time; only [Host.HangUp] may be called at any time, because the
// scripted systemd calls it. The methods of an FDStore may be called concurrently. Every process ends with its
// test. An error fails the test. Without dbus-daemon, systemd-logind or root the test is skipped.
package logindhost
