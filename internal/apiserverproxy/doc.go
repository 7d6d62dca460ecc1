// Package apiserverproxy puts a proxy between a client and an API server that causes the
// faults that a test asks for:
//
//	proxy := apiserverproxy.Start(t, apiserverprocess.Start(t))
//	client, err := apistatus.NewClient(&rest.Config{Host: proxy.URL()})
//	proxy.Script(apiserverproxy.Rules(
//		apiserverproxy.Rule{Verb: "patch", Resource: "pods/status", Name: "web", Fault: apiserverproxy.Fault{Status: http.StatusForbidden}},
//		apiserverproxy.Rule{Verb: "get", Times: 1, Fault: apiserverproxy.Fault{Drop: true}},
//	))
//	... // report a status with client
//	requests := proxy.Requests() // the client's requests, in order, with their answers
//
// A [Fault] delays, refuses with any status, drops or hangs a request, or carries it out
// and loses the answer. A [Script] chooses the fault of each request: [Rules] by a table,
// [Limit] by a rate limit. [Proxy.Die] and [Proxy.Revive] make the server unreachable for
// a while. A [Transport] does the same, except dying, without a proxy and without
// sockets, in front of any [http.RoundTripper].
//
// The proxy is a [net/http/httputil.ReverseProxy], so without a fault the client receives
// the server's own answer, also for watches.
//
// # Concurrency properties
//
// All functions and methods may be called concurrently. Scripts are called by the
// goroutines of the requests, concurrently and without a lock, so a script may wait or
// call methods of the proxy. When the test ends, no goroutine of the proxy is left, not
// even that of a request that hangs. Do not use a proxy in testing/synctest bubbles,
// because it is reached over TCP; use a [Transport] there.
//
// # Failure modes
//
// If the server does not answer, the proxy closes the client's connection without an
// answer. A failure of the listener fails the test.
package apiserverproxy
