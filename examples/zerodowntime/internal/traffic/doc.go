// Package traffic sends requests and records what becomes of each:
//
//	var recorder traffic.Recorder
//	traffic.Requests(ctx, until, "http://127.0.0.1:8080/", 100, &recorder)
//	counts := traffic.Count(recorder.Events())
//
// # Concurrency properties
//
// All methods of a [Recorder] may be called concurrently. [Requests] and [Websockets] return
// when all their requests have ended.
//
// # Failure modes
//
// A request that fails is an event. Requests that the end of the context breaks off are not
// recorded.
//
// # Testing
//
// The tests of package rollout send traffic to real backends.
package traffic
