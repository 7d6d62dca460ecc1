// Package clustertest gives a test a real API server that knows one node:
//
//	cluster := clustertest.Start(t, "node-1")
//	client, err := apiserver.Connect(ctx, &rest.Config{Host: cluster.URL()}, "node-1", static)
//	cluster.Script(apiserverproxy.Always(apiserverproxy.Fault{Hang: true})) // from now on
//	... // what the agent does
//	pod := cluster.Pod("default", "web-node-1") // as it is stored
//
// The server is that of internal/apiserver of the library, as a process of its own, and
// its URL is that of a proxy (package apiserverproxy), which does the harm that a test asks
// for and notes the requests. What the methods of this package read and write goes past
// the proxy: it suffers no fault and is not noted.
//
// # Concurrency properties
//
// All methods may be called concurrently, from the goroutines of hooks and scripts too.
// The server is reached over TCP: keep it out of bubbles of testing/synctest.
//
// # Failure modes
//
// What keeps the server from starting ends the test. A later error of a method fails the
// test, which goes on with nothing read.
//
// # Testing
//
// The tests of the agent are its tests.
package clustertest
