// Package notice watches a cloud's metadata service for termination notices of this machine: EC2's spot
// interruptions, Compute Engine's preemption and maintenance, and Azure's Scheduled Events. A notice
// comes up to 15 minutes before the host shuts down, and some machines are powered off without any
// other signal. [Watch] passes it to the manager's Trigger:
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
//		"github.com/kubegrace/kubegrace/shutdown/notice"
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
//		azure := notice.Azure() // or EC2, or GCE
//		azure.OnError = func(err error) { log.Print(err) }
//		manager, err := shutdown.NewManager(shutdown.Options{
//			Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}},
//			ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web"}}} }, nil),
//			Killer:   shutdown.PodKillerFunc(kill),
//			OnReport: func(ctx context.Context, r shutdown.Report) {
//				if r.Cancelled || r.Ended.IsZero() { // Ended is zero if the end of Run interrupts the drain
//					return
//				}
//				if err := notice.Acknowledge(ctx, azure); err != nil { // Azure need not wait longer
//					log.Print(err)
//				}
//			},
//			// Set Source to logind too: both announce one shutdown.
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//		watched := make(chan error, 1)
//		go func() { watched <- notice.Watch(ctx, azure, manager.Trigger) }()
//		if err := manager.Run(ctx); err != nil {
//			log.Fatal(err)
//		}
//		if err := <-watched; err != nil {
//			log.Print(err)
//		}
//	}
//
// The manager drains at once. To drain later, pass [Watch] a function that calls Trigger later. A notice and the
// host's following shutdown are one shutdown with one report. A withdrawn notice cancels only its own
// announcement, not that of the host.
//
// # Providers
//
//	Provider  Notice                             Event                             Withdrawn when
//	EC2       spot/instance-action               power off at its time             it is gone
//	GCE       preempted TRUE                     power off in 30 s                 FALSE
//	GCE       maintenance-event TERMINATE_...    power off, no deadline            another value
//	Azure     Preempt, Terminate                 power off at NotBefore            it is gone
//	Azure     Reboot, Redeploy                   reboot at NotBefore               it is gone
//
// Ignored: EC2's rebalance recommendation, Compute Engine's live migration and longer notices
// (preemptionNoticeDuration), and Azure's Freeze. An Auto Scaling lifecycle hook needs the AWS API.
//
// # Failures
//
//	What fails                          What happens
//	no answer, an error page, a         OnError is called once an outage, the announcement stays, and the
//	  redirect, over 1 MiB, another       request is repeated after 1, 2, 4, 8 and then every 10 s
//	  format
//	no such service                     the same: Watch does not find out which cloud it runs on
//	another service answers             the same: its answers lack EC2's session token, Compute Engine's
//	                                      Metadata-Flavor or Azure's DocumentIncarnation
//	announce fails, as before Run       OnError is called, and the notice is announced again
//	agent restarted                     the notice is announced again with its deadline; Compute Engine's
//	                                      30 s start again, but the manager keeps the earlier deadline
//	wrong clock of this machine         deadlines are corrected by the answers' Date
//
// A request times out after 5 s, 65 s while Compute Engine holds back an answer, and 130 s for Azure's first
// events.
//
// # Concurrency
//
// A [Provider] may be used concurrently. announce and OnError are called in the goroutine of [Watch]'s caller,
// one at a time; a panic of theirs reaches the caller.
//
// # Testing
//
// Set [Provider.Endpoint] to an httptest.Server. In a testing/synctest bubble, set [Provider.Dial] to
// one end of a net.Pipe whose other end an http.Server serves.
//
// # Stability
//
// Experimental: any release may change exported names; the changelog says how. The clouds may change
// the format of their notices.
package notice
