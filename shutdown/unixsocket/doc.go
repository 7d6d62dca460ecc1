// Package unixsocket is the [source.Source] of hosts without systemd: their init
// script announces the shutdown on a unix socket of the agent and waits for the reply.
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//		"os"
//		"os/signal"
//		"time"
//
//		v1 "k8s.io/api/core/v1"
//		metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
//
//		"github.com/kubegrace/kubegrace/shutdown"
//		"github.com/kubegrace/kubegrace/shutdown/plan"
//		"github.com/kubegrace/kubegrace/shutdown/unixsocket"
//	)
//
//	// kill stops the containers of a pod and returns when they have ended.
//	func kill(_ context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
//		fmt.Printf("kill %s within %d s\n", pod.Name, *req.GracePeriodSeconds)
//		return shutdown.KillResult{}, nil
//	}
//
//	func main() {
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
//		defer stop()
//		source, err := unixsocket.New(unixsocket.Options{Path: "/run/agent/shutdown.sock"})
//		if err != nil {
//			log.Fatal(err)
//		}
//		manager, err := shutdown.NewManager(shutdown.Options{
//			Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}},
//			Source:   source,
//			ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web"}}} }, nil),
//			Killer:   shutdown.PodKillerFunc(kill),
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		if err := manager.Run(ctx); err != nil { // makes the socket, in a folder that exists
//			log.Fatal(err)
//		}
//	}
//
// The script sends one line, KIND or KIND SECONDS, and goes on when the connection is closed
// or the seconds are over:
//
//	echo "poweroff 90" | timeout 90 socat -t 90 - UNIX-CONNECT:/run/agent/shutdown.sock
//
// The README beside this file has the scripts of OpenRC, runit and s6, and of a UPS (NUT, apcupsd).
//
// KIND is poweroff, reboot, halt, kexec, soft-reboot or, if the kind is not known,
// shutdown. SECONDS is how long the host waits, from 0 to a year; without it the host
// waits as long as [Options.Delay] says. When the pods have been drained, the agent
// replies with the line "released". Several connections may announce; they are one
// shutdown.
//
// The host shuts down when the seconds are over or it has read "released", whichever is first. A
// host that is still up half an hour after that has not shut down: an agent whose session is lost
// then does not find the shutdown pending any more. Until then it does, with the host's own
// deadline if SECONDS were given, and it is not begun again once that has passed.
//
// The line "cancel" cancels the shutdown, on any connection. The agent replies
// "cancelled" to the sender and to all that wait. A script that wants to announce
// another shutdown waits for that line, or for the end of the connection, before it
// does. A line of another form changes nothing; its reply is "error: " and the reason.
//
// A program that wants to hold its host and has no pods needs no manager: it imports this package
// and shutdown/source, whose documentation has such a program for logind, and gets klog besides.
//
// Whoever can connect can drain the node. The socket has mode 0600 from the moment it
// exists, and on Linux the kernel tells which user has connected: only root and the
// agent's own user are accepted. On other systems the mode decides. Only the agent's
// user should have access to the directory.
//
// # Concurrency properties
//
// All methods may be called concurrently. A session has one goroutine that accepts
// connections, one that keeps the socket in place, and one for each connection that it
// reads. Announcements and cancellations reach the manager one after the other, in the order
// in which they count. Close waits for the goroutines. A connection that waits for the reply
// outlives the session, as the lock does. No mutex is held while anything is read or written.
//
// # Failure modes
//
//   - The socket is removed or replaced: the session makes it again within a second. If
//     that fails, the session ends, and the next Connect returns the error.
//   - Another agent listens on the same path: the later agent has the socket, and the
//     earlier one takes it back when the later one ends or dies. An agent removes only
//     its own socket when it ends. The next agent removes what an agent left behind
//     that died during listen.
//   - The connected user is neither root nor the agent's: the reply is an error. In a
//     user namespace this also refuses the root user of the host.
//   - A connection sends no complete line for 10 s, or a line of more than 256 bytes:
//     the reply is an error, and the connection is closed. At most 64 connections may
//     be open that have announced nothing; a new one replaces the oldest. At most 64 may
//     wait for the reply; further ones announce, and are told that they do not wait.
//   - A host closes the connection without waiting: that is neither an error nor a
//     cancellation, since the host does what it has announced. A host that does not read
//     its reply costs a second, and nothing more is read from it.
//   - A cancellation arrives while the session ends: it has no effect, and the reply says
//     so. An announcement at that moment is pending for the next session.
//   - The agent dies: its connections are closed and the host shuts down. After a restart
//     the agent cannot ask the host whether a shutdown is under way, so the manager
//     relies on its state file.
//
// # Testing
//
// Use a real socket in a temporary directory, outside of testing/synctest bubbles.
//
// # Stability
//
// Stable: from v0.1.0 on what is exported changes in a minor release only, and the changelog
// says how.
package unixsocket
