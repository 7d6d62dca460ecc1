// Package logindtest provides a scripted logind on a D-Bus of its own, for tests:
//
//	broker := logindtest.StartBroker(t)
//	broker.Login1.SetLimit(time.Minute) // the default is 5 s
//	source, err := logind.New(logind.Options{Address: broker.Address, HostRoot: t.TempDir()})
//	require.NoError(t, err)
//	// run the agent with source, then
//	broker.Login1.Prepare(true)
//	// and wait until broker.Login1.Held() is empty
//
// A [Broker] is a small bus in the process of the test. It can lack optional features: see [Lack].
// [StartLogin1] and [StartSystemd1] add the scripted services to another bus. The scripted logind can also
// answer late, refuse, or send invalid messages.
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
// This package's tests make the kubelet's calls. Package logind is also tested with a real logind.
//
// # Stability
//
// For tests: any release may change exported names.
package logindtest
