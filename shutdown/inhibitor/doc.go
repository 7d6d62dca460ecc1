// Package inhibitor holds the inhibitor lock of a host for a program without pods, and calls a function when the host
// shuts down. A program with pods uses the manager of package shutdown instead.
//
//	package main
//
//	import (
//		"context"
//		"log"
//		"os/signal"
//		"syscall"
//		"time"
//
//		"github.com/kubegrace/kubegrace/shutdown/inhibitor"
//		"github.com/kubegrace/kubegrace/shutdown/logind"
//		"github.com/kubegrace/kubegrace/shutdown/source"
//	)
//
//	func main() {
//		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
//		defer stop()
//		host, err := logind.New(logind.Options{})
//		if err != nil {
//			log.Fatal(err)
//		}
//		holder := inhibitor.Holder{Source: host, Delay: 30 * time.Second, OnShutdown: saveWork}
//		if err := holder.Run(ctx); err != nil {
//			log.Fatal(err)
//		}
//	}
//
//	// saveWork must return before event.Deadline, which is zero if the host does not say it. The machine
//	// shuts down when saveWork returns: it must not leave work to a goroutine.
//	func saveWork(ctx context.Context, event source.Event) {
//		if end, isKnown := ctx.Deadline(); isKnown {
//			log.Printf("the machine shuts down at %v at the latest", end)
//		}
//	}
//
// # Failures
//
//	what fails                       what happens                          what to do
//	the session is lost              Run logs it, connects again every     check the host
//	                                   second, and keeps the lock
//	the host refuses the lock        Run logs it and tries again every     check the rights of the program
//	                                   second
//	the host grants less than Delay  Run logs it; the lock is held         raise the limit, or work with the
//	                                                                         granted time
//	the program starts during a      OnShutdown is called; there is no     see the source's documentation
//	  shutdown                         lock unless the host or systemd
//	                                   has kept the previous run's
//	OnShutdown returns before its    the machine shuts down; Run logs      wait for goroutines before the
//	  work is done                     when it has returned                  return
//	OnShutdown ignores its context   after 5 s Run logs it; the lock       mend OnShutdown
//	                                   stays held until the host's limit
//	a call of the source hangs       it is abandoned and logged            check the host
//
// A repeated failure is logged once. The logger is that of klog in the context of Run.
//
// # Concurrency
//
// [Holder.Run] calls OnShutdown in a goroutine and waits for it.
//
// # Testing
//
// Package shutdown/shutdowntest has a fake host.
//
// # Stability
//
// v0: minor releases may change exported names; the changelog says how.
package inhibitor
