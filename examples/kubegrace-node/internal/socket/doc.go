// Package socket is the control socket of the agent, over which commands of the same
// program talk to a running agent. Only root and the agent's own user may connect: the mode of the socket is
// 0600, and that of a new folder 0700. Listen replaces a socket that nobody serves; one that is in use is an error.
package socket
