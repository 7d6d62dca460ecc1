// Package logindtest provides a scripted logind on a D-Bus of its own, for tests:
//
//	broker := logindtest.StartBroker(t)
//	broker.SetLimit(time.Minute) // the default is 5 s
//	source, err := logind.New(logind.Options{Address: broker.Address, HostRoot: t.TempDir()})
//	require.NoError(t, err)
//	// run the agent with source, then
//	broker.Prepare(true)
//	// and wait until broker.Held() is empty
//
// A [Broker] is a small bus in the process of the test, with a scripted logind and systemd.
//
// # Failures
//
// An error of the fixture fails the test.
//
// # Concurrency
//
// All methods may be called concurrently. Goroutines end with the test, or with the Broker's Close. Granted
// locks stay held until their holders close them.
//
// # Testing
//
// Package logind itself is tested with this bus, without each feature that the kubelet does not need, and with
// a real logind.
//
// # Stability
//
// For tests: any release may change exported names.
package logindtest
