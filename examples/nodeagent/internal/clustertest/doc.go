// Package clustertest gives a test a real API server that has one node:
//
//	cluster := clustertest.Start(t, "node-1")
//	client, err := apiserver.Connect(ctx, &rest.Config{Host: cluster.URL()}, "node-1", static)
//	cluster.Script(apiserverproxy.Always(apiserverproxy.Fault{Hang: true})) // from now on
//	... // what the agent does
//	pod := cluster.Pod("default", "web-node-1") // as it is stored
//
// The server is internal/apiserver of the library, in a process of its own. Its URL leads
// to a proxy (package apiserverproxy), which injects the faults that a test scripts and
// records the requests. The methods of this package bypass the proxy: their requests are
// neither disturbed nor recorded.
//
// # Concurrency properties
//
// All methods may be called concurrently, also from hooks and scripts. Tests reach the
// server over TCP, so they cannot run in bubbles of testing/synctest.
//
// # Failure modes
//
// If the server does not start, the test ends. If a later request fails, the test fails
// and goes on with an empty result.
//
// # Testing
//
// The tests of packages agent and apiserver use it.
package clustertest
