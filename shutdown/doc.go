// Package shutdown drains the pods of a node when its host shuts down. It is the kubelet's
// graceful node shutdown (KEP-2000, KEP-2712) for any node agent: pods are killed in buckets
// by priority, each bucket with its seconds, while an inhibitor lock delays the host.
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
//	// pods returns the pods that run on this node.
//	func pods() []*v1.Pod {
//		return []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}}
//	}
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
//		source, err := logind.New(logind.Options{})
//		if err != nil {
//			log.Fatal(err)
//		}
//		manager, err := shutdown.NewManager(shutdown.Options{
//			Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}},
//			Source:   source,
//			ListPods: shutdown.ListPodsFunc(pods, nil),
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
// # What happens in a shutdown
//
// A [plan.Config] gives a [plan.Schedule]: buckets of pods by priority, each with its seconds. When the
// [source.Source] announces a shutdown, the [Manager] refuses new pods, has the [Reporter] publish the node's
// state, and drains the buckets from the lowest priority to the highest. It kills the pods of a bucket and
// waits for their end, their volumes and their final statuses. Then it releases the inhibitor lock, and
// [Options.OnReport] gets a [Report].
//
// Package logind is a source for systemd, package unixsocket for other hosts. Without a source
// [Manager.Trigger] announces a shutdown; [Manager.TerminateAll] drains the node without one. Package
// podkiller makes a lifecycle.Terminator the [PodKiller]. Each announcer takes back its own
// announcement, and a shutdown is cancelled when none is left: no further pod is signalled, and those that
// were run out their grace periods.
//
// [Manager.Run] blocks. A Start method like the kubelet's is made of Run and Ready:
//
//	func (a *agent) Start(ctx context.Context) error {
//		a.ended = make(chan error, 1) // received from before the agent exits
//		go func() { a.ended <- a.manager.Run(ctx) }()
//		<-a.manager.Ready()
//		return a.manager.Inhibitor().Err // log it and go on: the manager tries again every second
//	}
//
// # Time
//
// The configured seconds are for the pods alone. Everything else, such as [Options.Hold] and final
// statuses, has time of its own, which the host is asked for on top. If the host waits for less, the pods
// come first. [Manager.Plan] shows what each gets, and package plan explains it. A deadline only moves
// earlier, and the lock is never held past the end of the host's time. Times are those of the monotonic
// clock: neither a step of the wall clock nor a suspend moves them.
//
// # When something fails
//
// Each failure is logged when it happens. Those of a drain are in its report, and [Report.Err] joins them.
//
//	what fails                    what happens                                    what to do
//	the host: not reached, or     tried again every second                        see Inhibitor().Err
//	  refuses or loses the lock
//	the host waits for less       held all the same; a *DelayCappedError          raise the limit that it names
//	a kill                        repeated every second with what is left         wrap ErrNoRetry if that is no use
//	the list of pods              repeated; the last complete list counts         return an error, never half a list
//	the API server                tried again; a drain waits 2.5 s in vain, once  set StateDir: the next agent sends
//	                                                                              what was not accepted
//	your code hangs or panics     logged after 5 s; the lock goes in time         heed the context
//	the agent is restarted        the shutdown goes on with the same deadlines    set StateDir; let systemd keep the
//	                                                                              lock (FileDescriptorStoreMax)
//	the state log                 named and ignored, or written again             see the report
//	another agent has the folder  pods are refused for 10 s; then no state        RequireStateDir ends Run instead
//	Run's context ends in a       ErrInterrupted with the pods that may still     end it after the shutdown, or call
//	  drain                       run; OnReport is called                         TerminateAll
//
// # The state log
//
// graceful_node_shutdown_log in [Options.StateDir] is a file of JSON lines: the version and the boot, then
// a line for each shutdown or pod whenever it changes. The last line of each counts; a torn one is ignored.
// The next agent goes on with what it reads, and [StoredReport] reads it for any other program. Beside it
// are the kubelet's graceful_node_shutdown_state and a lock file.
//
// # Testing
//
// Package shutdowntest has a host, a killer and a reporter that do what a test tells them to. In a bubble of
// testing/synctest a shutdown of an hour takes a millisecond.
//
// # Stability
//
// Stable: from v0.1.0 on what is exported changes in a minor release only, and the changelog says how.
package shutdown
