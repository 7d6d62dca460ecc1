// Package unixsocket is the [shutdown.Source] of hosts without systemd: their init
// script announces the shutdown on a unix socket of the agent, and waits for the
// reply.
//
//	source, err := unixsocket.New(unixsocket.Options{Path: "/run/agent/shutdown.sock"})
//	if err != nil {
//		return err
//	}
//	manager, err := shutdown.NewManager(shutdown.Options{
//		Config: config, Pods: pods, Killer: killer,
//		Source: source,
//	})
//	if err != nil {
//		return err
//	}
//	return manager.Run(ctx)
//
// The script sends one line, KIND [SECONDS], and goes on when the connection is
// closed, or after these seconds:
//
//	echo "poweroff 90" | timeout 90 socat -t 90 - UNIX-CONNECT:/run/agent/shutdown.sock
//
// KIND is shutdown (not known), poweroff, reboot, halt, kexec or soft-reboot; without
// SECONDS the host waits as [Options.Delay] says. The reply is the line "released"
// when the pods have been drained. The line "cancel", on any connection, calls the
// shutdown off; whoever waits, and whoever said it, is told "cancelled". A script that
// announces again afterwards waits for that line, or for the end of the connection: the
// agent has heard of the cancellation then. A line that is not understood is answered
// with "error: " and the reason, and changes nothing. Several connections may announce:
// it is one shutdown.
//
// Whoever may connect can have the node drained. The socket has mode 0600 from its
// first moment, and on Linux the kernel is asked who has connected: it must be root or
// the agent's own user. Elsewhere the mode decides. The directory should let only the
// agent's user in.
//
// # Concurrency properties
//
// A session has one goroutine that accepts, one that looks after the socket, one that
// hands statements to the manager, one after the other, and one for each connection that
// is read; Close waits for them. A connection that waits for its reply outlives the
// session, as the lock does. No mutex is held while anything is read or written.
//
// # Failure modes
//
//   - The socket is removed or replaced: it is made anew within a second, and the session
//     goes on. If it cannot be made, the session ends, and the next Connect says why.
//   - Another agent listens on the same path: the later one has the socket, and the other
//     takes it back when the later one ends or dies. An agent that ends removes only its
//     own socket; leftovers of one that died while it listened are removed by the next.
//   - A user who is neither root nor the agent's is told so and is not heard; to an agent
//     in a user namespace that includes root of the host.
//   - A connection that says nothing whole for 10 s, or a line of more than 256 bytes, is
//     answered with an error and closed. 64 connections are read before they have announced
//     something; a new one takes the place of the oldest. 64 wait for the reply; others
//     announce, and are told that they do not wait.
//   - A host that goes away without waiting is no error and no cancellation: it does what
//     it has announced. One that does not read its reply costs a second, and is not heard
//     any more.
//   - A cancellation that comes while the session ends, as its sender is told, has
//     cancelled nothing. An announcement is pending for the next session.
//   - An agent that dies closes all connections, and its host goes on; after a restart
//     the host is not asked what is under way, because it could not answer, and the manager
//     goes by its state file.
//
// # Testing
//
// The socket is real: use a temporary directory, and no bubble of testing/synctest.
package unixsocket
