// Package apiserverproxy has a proxy that injects faults between a client and an API server:
//
//	proxy := apiserverproxy.Start(t, apiserverprocess.Start(t))
//	client, err := apistatus.NewClient(&rest.Config{Host: proxy.URL()})
//	proxy.Script(apiserverproxy.Rules(
//		apiserverproxy.Rule{Verb: "patch", Resource: "pods/status", Name: "web", Fault: apiserverproxy.Fault{Status: http.StatusForbidden}},
//		apiserverproxy.Rule{Verb: "get", Times: 1, Fault: apiserverproxy.Fault{Drop: true}},
//	))
//	... // report a status with client
//	requests := proxy.Requests() // the client's requests and their responses, in order
//
// A [Fault] delays, rejects, drops or hangs a request, or forwards it and loses the response. A [Script] selects
// the fault of each request: [Rules] by a table, [Limit] by a rate limit. [Proxy.Die] and [Proxy.Revive] make the
// server temporarily unreachable. A [Transport] causes the same faults without a proxy, in front of any
// [http.RoundTripper].
//
// Without a fault the client receives the server's unmodified response, even of watches.
//
// # Failures
//
// If the server does not respond, the proxy closes the client's connection. An error of the listener fails the
// test.
//
// # Concurrency
//
// All functions and methods may be called concurrently. Scripts are called concurrently and without a lock, so a
// script may wait or call methods of the proxy. All goroutines end with the test, even those of hanging requests.
// In testing/synctest bubbles use a [Transport], because a proxy needs TCP.
package apiserverproxy
