// Package notice hears a cloud's notice that this machine is going to go, and when it is taken back:
// EC2's spot interruptions, Compute Engine's preemption and maintenance, Azure's Scheduled Events.
// A notice comes up to 15 minutes before the host shuts down, and some machines are switched off
// without any signal of the host. [Watch] hands it to the manager's Trigger:
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
//				if r.Cancelled {
//					return
//				}
//				if err := notice.Acknowledge(ctx, azure); err != nil { // Azure need not wait any longer
//					log.Print(err)
//				}
//			},
//			// With Source: logind's, the inhibitor lock is held too. The two are one shutdown.
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
// The manager drains at once: a program that has better use for a long notice calls Trigger later. A
// notice and the shutdown of the host that follows it are one
// shutdown with one report. A notice that is taken back is a cancellation of its own Origin: what
// the host has announced stays.
//
// What the providers say, and what becomes of it:
//
//	EC2    spot/instance-action                  power off at its time; gone: taken back
//	GCE    preempted                             power off in 30 s; FALSE: taken back
//	GCE    maintenance-event TERMINATE_...       power off, time unknown; another value: taken back
//	Azure  Preempt, Terminate; Reboot, Redeploy  power off; reboot at NotBefore; gone: taken back
//
// No shutdown are EC2's rebalance recommendation, a live migration of Compute Engine's and Azure's
// Freeze. What an Auto Scaling group does to its instances is not heard: its hook waits for a call
// of the AWS API, and without one the host itself shuts down.
//
// A machine that asks Compute Engine for a longer notice (preemptionNoticeDuration) has 30 s all
// the same.
//
// # Concurrency properties
//
// A [Provider] may be used by several calls at once. [Watch] has one goroutine for each question
// (two for Compute Engine, else one) and ends with them. announce and OnError are called in the
// goroutine of its caller, one at a time; what they panic with is the caller's. No mutex is held
// anywhere.
//
// # Failure modes
//
//   - The service does not answer, hangs, or answers with an error page, a redirect, a body of
//     more than 1 MiB or another form: OnError is told once, what was announced stands, and the
//     question is asked again after 1, 2, 4, 8 and then every 10 s. A request is bounded by 5 s;
//     by 65 s where Compute Engine holds its answer back; by 130 s for the first of Azure's
//     events.
//   - There is no such service here: the same, for ever. Which cloud a machine is in is for the
//     embedder to know.
//   - Another service answers there: EC2 must give a session token, Compute Engine its
//     Metadata-Flavor, Azure a DocumentIncarnation.
//   - announce fails, as Trigger does before Run: OnError is told, and the notice is announced
//     again.
//   - The agent is restarted: the notice is announced again, with the same deadline but for
//     Compute Engine's preemption, whose 30 s count from when it is first read. The manager
//     knows the earlier one from its record.
//   - The clock of this machine is wrong: deadlines are corrected by the Date of the service's
//     answers.
//
// # Testing
//
// Point [Provider.Endpoint] at an httptest.Server that answers as the service does. In a
// testing/synctest bubble set [Provider.Dial] to one end of a net.Pipe whose other end an
// http.Server serves.
//
// # Stability
//
// Experimental: what is exported may change in a patch release, and the changelog says how.
// What it reads belongs to the clouds.
package notice
