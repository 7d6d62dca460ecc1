// Package logindhost is for tests with a real D-Bus or a real systemd-logind: a [Bus] is a dbus-daemon, to
// which logindtest.StartLogin1 and StartSystemd1 add their scripts; a [Host] is a systemd-logind in the namespaces of
// [InNamespace]; a [FDStore] is systemd's, for the unit of the agent. All methods may be called concurrently.
// Every process ends with its test. An error of the fixture fails the test, and one that lacks dbus-daemon,
// systemd-logind or root is skipped.
package logindhost
