// Package proxy is a load balancer that learns of its backends with a delay, as kube-proxy
// and ingress controllers do: an EndpointSlice is written, sent to each node, and made into
// rules there before a change takes effect.
//
//	table := proxy.NewTable(1500 * time.Millisecond)
//	handler := proxy.New(table)
//	defer handler.Close()
//	table.Publish(endpoints) // takes effect 1.5 s later
//	err := http.Serve(listener, handler)
//
// # Concurrency properties
//
// All methods may be called concurrently.
//
// # Failure modes
//
// A request that no backend has answered gets a status from 500 on, and the header
// [FailureHeader], which tells a refused connection from an answer that was broken off.
//
// # Testing
//
// The tests of [Table] run in synctest bubbles, those of [Handler] with real servers.
package proxy
