// Package apiserverproxy stands between a client and an API server and does the harm
// that a test asks for:
//
//	proxy := apiserverproxy.Start(t, apiserverprocess.Start(t))
//	client, err := apistatus.NewClient(&rest.Config{Host: proxy.URL()})
//	proxy.Script(apiserverproxy.Rules(
//		apiserverproxy.Rule{Verb: "patch", Resource: "pods/status", Name: "web", Fault: apiserverproxy.Fault{Status: http.StatusForbidden}},
//		apiserverproxy.Rule{Verb: "get", Times: 1, Fault: apiserverproxy.Fault{Drop: true}},
//	))
//	... // report a status with client
//	asked := proxy.Requests() // what the client wanted, in order, and what it got
//
// A [Fault] delays, refuses with any status, drops, hangs, or loses the answer of a
// request that is carried out. A [Script] chooses one for each request; [Rules] is a
// table of them, [Limit] a server that has too much to do. [Proxy.Die] and
// [Proxy.Revive] are a server that is not there for a while. A [Transport] does all
// this, but dying, without a proxy and without sockets, before any [http.RoundTripper].
//
// The proxy is [net/http/httputil.ReverseProxy], so that what passes is the server's
// own answer, watches included.
//
// # Concurrency properties
//
// Everything may be used by several goroutines. Scripts are called by the goroutines of
// requests, many at once; no lock is held meanwhile, so that a script may wait or call
// the proxy. When the test ends the proxy has no goroutine left, those of requests that
// hang included. A proxy is reached over TCP: keep it out of bubbles of
// testing/synctest, where a [Transport] is at home.
//
// # Failure modes
//
// Where the server behind the proxy does not answer, the client's connection is closed
// without an answer. A listener that fails by itself fails the test.
package apiserverproxy
