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
// shutdown off, and whoever waits is told "cancelled". A line that is not understood
// is answered with "error: " and the reason, and changes nothing. Any number of
// connections may announce: it is one shutdown.
//
// Whoever may connect can have the node drained, so the socket has mode 0600; its
// directory should let only the agent's user in.
//
// # Concurrency properties
//
// A session has one goroutine that accepts and one for each connection that is read;
// Close waits for them. A connection that waits for its reply needs none, and outlives
// the session, as the lock does. No mutex is held while anything is read or written.
//
// # Failure modes
//
// A host that goes away without waiting is no error and no cancellation: it does what
// it has announced. One that does not read its reply costs a second. An agent that
// dies closes all connections, and its host goes on; after a restart the host is not
// asked what is under way, because it could not answer, and the manager goes by its
// state file.
//
// # Testing
//
// The socket is real: use a temporary directory, and no bubble of testing/synctest.
package unixsocket
