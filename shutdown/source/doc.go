// Package source defines the interface of a host that announces its shutdown and can be delayed with an
// inhibitor lock. It imports only the standard library. A program without pods can use a [Holder] instead of
// the manager of package shutdown:
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
//		holder := source.Holder{Source: host, Delay: 30 * time.Second, OnShutdown: saveWork}
//		if err := holder.Run(ctx); err != nil {
//			log.Fatal(err)
//		}
//	}
//
//	// saveWork must return before event.Deadline. The machine shuts down when it returns.
//	func saveWork(ctx context.Context, event source.Event) {
//		log.Printf("the machine shuts down (%s) at %v at the latest", event.Kind, event.Deadline)
//	}
//
// Packages shutdown/logind and shutdown/unixsocket have sources.
//
// # Failures
//
//	what fails                       what happens                          what to do
//	the session is lost              Events is closed; the lock stays      connect, take a new lock, then
//	                                   held                                  close the old one (Holder and
//	                                                                         the manager do)
//	a lock is dropped without Close  it is held as long as its session     keep the lock
//	the host grants less than        RequestDelay returns a                raise the limit, or work with the
//	  requested                        *DelayCappedError                     granted time
//
// # Concurrency
//
// All methods of a [Source], a [Session] and an [Adopter] may be called concurrently. [Holder.Run] calls
// OnShutdown in a goroutine and waits for it.
//
// # Testing
//
// Package shutdown/shutdowntest has a fake host.
//
// # Stability
//
// v0: minor releases may change exported names; the changelog says how.
package source
