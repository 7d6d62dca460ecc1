// Package logindtest gives a test a scripted logind on a D-Bus of its own:
//
//	broker := logindtest.StartBroker(t)
//	broker.Login1.SetLimit(time.Minute) // else it waits for 5 s, and pods that need longer are cut
//	source, err := logind.New(logind.Options{Address: broker.Address, HostRoot: t.TempDir()})
//	require.NoError(t, err)
//	// run the agent with source, then
//	broker.Login1.Prepare(true)
//	// and see that it drains, and that broker.Login1.Held() comes to be empty
//
// A [Broker] is a small bus, in the process of the test. It can leave out what hosts with a small bus do
// not have: see [Lack]. [StartLogin1] and [StartSystemd1] add the same scripts to another bus.
//
// # Concurrency properties
//
// All methods may be called concurrently. Every goroutine ends with its test, or with the Broker's Close.
//
// # Failure modes
//
// An error of the fixture fails the test. Locks that were granted stay held until their holders close
// them, whatever becomes of the bus.
//
// # Testing
//
// The scripted logind implements the protocol itself, so that it can also answer late, refuse, or
// send bodies that logind would never send. How logind really behaves is tested with a real one, in the tests of package logind.
//
// # Stability
//
// For tests: what is exported may change in a patch release, and a program needs none of it.
package logindtest
