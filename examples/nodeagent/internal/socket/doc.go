// Package socket is the control socket of the agent, over which commands of the same
// program talk to a running agent:
//
//	listener, err := socket.Listen("/run/nodeagent/control.sock")
//	...
//	response, err := socket.Client("/run/nodeagent/control.sock").Get("http://agent/pods")
//
// # Concurrency properties
//
// A listener and a client may be used concurrently, as those of packages net and
// net/http.
//
// # Failure modes
//
// Only root and the agent's own user may connect: the mode of the socket is 0600, and that of a new
// folder 0700. Listen replaces a socket that nobody serves; a socket that is in use is an error.
//
// # Testing
//
// The tests use real sockets in t.TempDir.
package socket
