// Package socket is the agent's control socket, on which the program's other commands talk to a running agent.
// Only root and the agent's own user can connect: the mode of the socket is 0600, and that of a folder that
// Listen creates 0700. Listen replaces a socket on which no process listens. If a process listens, it returns an
// error.
package socket
