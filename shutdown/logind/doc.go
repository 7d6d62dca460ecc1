// Package logind is the [source.Source] of hosts with systemd: systemd-logind announces a shutdown over
// D-Bus and delays it while an inhibitor lock is held.
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
//		"github.com/kubegrace/kubegrace/shutdown/logind"
//		"github.com/kubegrace/kubegrace/shutdown/plan"
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
//		host, err := logind.New(logind.Options{})
//		if err != nil {
//			log.Fatal(err) // on systems other than Linux it wraps errors.ErrUnsupported
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
//		if err := manager.Run(ctx); err != nil { // until ctx ends
//			log.Fatal(err)
//		}
//	}
//
// To take the lock, the agent must be root or allowed by polkit; to raise logind's limit, it must be
// root. A program without pods uses package shutdown/inhibitor instead of the manager. Call [Source.Available]
// before you make the manager if the agent has another source for hosts without logind.
//
// The README beside this file has the required bus features, how the limit is raised, and more errors.
//
// # Limit
//
// logind delays a shutdown for at most InhibitDelayMaxSec, 5 s by default. If the manager needs more,
// [source.Session.RequestDelay] writes a drop-in and reloads logind. The drop-in stays when the agent ends;
// [Source.RemoveDropIn] removes it. Its name sorts late, so that it wins over most other drop-ins.
//
// # Restarts
//
// When an agent dies, logind releases its lock and the host shuts down at once. Run the agent as a systemd
// unit with these settings to prevent that:
//
//	[Service]
//	Type=notify
//	FileDescriptorStoreMax=4
//	Restart=always
//	RestartSec=0
//
// A copy of the lock is then kept in systemd's FD store. [Source.Adopt] returns it to the next process.
//
// # Failures
//
//	What fails                           What happens                         What to do
//	no bus or logind                     Run logs it and retries every 1 s    check dbus and systemd-logind
//	bus lost, logind restarted or        Events is closed                     close the old lock after taking
//	  it no longer lists the lock                                               a new one (the manager does)
//	limit below the request              a *[source.DelayCappedError] names   raise or remove that setting
//	                                       the file that sets it
//	agent in a container without /etc    logind does not see the drop-in      set Options.HostRoot
//	somebody else's file at the          it is not changed, and is an error   set Options.DropInName
//	  drop-in's path
//	Inhibit during a shutdown            OperationInProgress, unless a lock   call Inhibit before
//	                                       is stored
//	agent started during a shutdown      Pending has no deadline              -
//	FD store full or disabled            only systemd's log says so           raise FileDescriptorStoreMax
//
// # Concurrency
//
// All methods may be called concurrently. Events keep the order of logind's signals; a slow reader delays
// but never loses them. A lock stays held after its session ends, until it is closed.
//
// # Testing
//
// Use package shutdowntest, or logindtest for a scripted logind on a bus in the test's process.
//
// # Stability
//
// v0: minor releases may change exported names; the changelog says how.
package logind
