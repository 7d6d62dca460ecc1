// Package bustest gives the tests of logind a D-Bus of their own and, on it,
// either a login1 that does what the test says or a real systemd-logind:
//
//	bus := bustest.StartBus(t, "")
//	login1 := bustest.StartLogin1(t, bus.Address)
//	login1.SetLimit(time.Minute)
//	login1.Prepare(true)
//
// # Concurrency properties
//
// All methods may be called from any goroutine. Every process and goroutine ends
// with its test.
//
// # Failure modes
//
// What goes wrong in the fixture fails the test. Where dbus-daemon or
// systemd-logind is not installed the test is skipped, see internal/need.
//
// # Testing
//
// The scripted login1 speaks the protocol by hand, so that it can also be wrong:
// late, refusing, or with bodies that logind would never send. What it cannot
// show is what logind really does; [Host] can.
package bustest
