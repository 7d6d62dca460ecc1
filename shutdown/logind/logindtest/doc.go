// Package logindtest gives a test of logind its own D-Bus and, on that bus, either a
// scripted login1 or a real systemd-logind:
//
//	bus := logindtest.StartBus(t, "")
//	login1 := logindtest.StartLogin1(t, bus.Address)
//	login1.SetLimit(time.Minute)
//	login1.Prepare(true)
//
// # Concurrency properties
//
// All methods may be called concurrently. Every process and every goroutine ends with its
// test.
//
// # Failure modes
//
// An error of the fixture fails the test. If dbus-daemon or systemd-logind is not
// installed, the test is skipped, see internal/need.
//
// # Testing
//
// The scripted login1 implements the protocol itself, so that it can also answer late,
// refuse, or send bodies that logind would never send. How logind really behaves is
// tested with [Host].
package logindtest
