// Package unixsocket is the [source.Source] of hosts without systemd: the init script announces the
// shutdown on a unix socket of the agent and waits for the reply.
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
//		host, err := unixsocket.New(unixsocket.Options{Path: "/run/agent/shutdown.sock"})
//		if err != nil {
//			log.Fatal(err)
//		}
//		manager, err := shutdown.NewManager(shutdown.Options{
//			Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}},
//			Source:   host,
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
// The script sends one line and waits:
//
//	echo "poweroff 90" | timeout 90 socat -t 90 - UNIX-CONNECT:/run/agent/shutdown.sock
//
// The README beside this file has scripts for OpenRC, runit, s6, NUT and apcupsd.
//
// # Protocol
//
//	Line                Meaning                                     Reply
//	KIND                shutdown; the host waits Options.Delay      "released" after the drain
//	KIND SECONDS        shutdown; the host waits SECONDS (0 to a    "released" after the drain
//	                      year)
//	cancel              cancels the shutdown, on any connection     "cancelled" to everybody who waits
//	any other           no effect                                   "error: " and the reason
//
// KIND is poweroff, reboot, halt, kexec, soft-reboot, or shutdown if it is unknown. Announcements of several
// connections are one shutdown. Announce another shutdown only a second after the reply to cancel: until the
// agent holds a new lock, the reply is "released" at once. An announced shutdown is pending for new sessions
// until half an hour after its deadline or the reply.
//
// # Security
//
// Whoever can connect can drain the node. The socket has mode 0600 from the start, and on Linux only root
// and the agent's user are accepted (SO_PEERCRED). Only the agent's user should have access to the folder.
//
// # Failures
//
//	What fails                              What happens
//	socket removed or replaced              it is created again within 1 s; if that fails, Events is
//	                                          closed, and Connect returns the error
//	two agents with one path                the later one has the socket until it ends
//	another user                            the reply is an error
//	no line within 10 s, or over 256 B      the reply is an error, and the connection is closed
//	over 64 silent or waiting connections   the oldest silent one is closed; a waiting one gets an error
//	host closes without waiting             no effect
//	host does not read the reply            the reply is dropped after 1 s
//	cancel while the session ends           no effect; the reply says to repeat it
//	agent dies                              hosts stop waiting; the next agent relies on its state folder
//
// # Concurrency
//
// All methods may be called concurrently. Events come in the order in which lines count. Close waits for the
// session's goroutines. A waiting connection and a lock outlive the session.
//
// # Testing
//
// Use a real socket in a temporary folder, outside testing/synctest bubbles.
//
// # Stability
//
// v0: minor releases may change exported names; the changelog says how.
package unixsocket
