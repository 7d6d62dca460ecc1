// Package shutdown drains the pods of a node when its host shuts down. It implements the kubelet's
// graceful node shutdown (KEP-2000, KEP-2712) for any node agent.
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
//		host, err := logind.New(logind.Options{})
//		if err != nil {
//			log.Fatal(err)
//		}
//		manager, err := shutdown.NewManager(shutdown.Options{
//			Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}},
//			Source:   host,
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
// A [Manager] holds the host's inhibitor lock. When a [source.Source] announces a shutdown, the manager
//
//   - refuses new pods and publishes the node state through the [Reporter],
//   - drains the buckets of a [plan.Schedule], lowest priority first: it kills a bucket's pods, then
//     waits for them to end, for their volumes, and for their final statuses,
//   - releases the lock and passes a [Report] to [Options.OnReport].
//
// Package logind is a source for systemd, package unixsocket for other hosts. [Manager.Trigger] announces a
// shutdown without a source; [Manager.TerminateAll] drains without a shutdown.
//
// When all announcers withdraw a shutdown, no further pod is killed. Signalled pods still terminate.
//
// # Time
//
// The configured seconds are for the pods alone. The manager requests extra time from the host for all other
// steps. If the host grants less, these steps are shortened first (see package plan). Deadlines only move
// earlier. Wall-clock steps do not move them.
//
// # Failures
//
// All failures are logged with klog, to Run's logger. [Report.Err] joins those of a shutdown.
//
//	what fails                    what happens                         what to do
//	the lock is refused or lost   retried every second                 check Inhibitor().Err
//	the host grants too little    the lock is held anyway              raise the limit named by
//	  time                                                               the *DelayCappedError
//	a kill                        retried every second with the        wrap ErrNoRetry to stop
//	                                remaining time                       the retries
//	ListPods                      retried; the last complete list      return an error, never a
//	                                is used                              partial list
//	the API server                retried; a drain waits 2.5 s, once   set StateDir: the next agent
//	                                                                     sends pending statuses
//	your code panics or hangs     logged (a hang after 5 s); the       respect the context
//	                                lock is released on time
//	the agent restarts            the shutdown resumes with the        set StateDir; keep the lock
//	                                same deadlines                       in systemd's FD store
//	the state log is damaged      the damaged part is ignored          check Report.Errors
//	another agent uses StateDir   pods are refused for 10 s; then      set RequireStateDir: Run
//	                                nothing is stored                    fails instead
//	Run's context ends during     Run returns ErrInterrupted           cancel it later, or call
//	  a drain                                                            TerminateAll
//
// # Concurrency
//
// Manager's methods may be called concurrently.
//
// # Testing
//
// Package shutdowntest has a fake host, killer and reporter.
//
// # Stability
//
// v0: minor releases may change exported names; the changelog says how.
package shutdown
