// Package source says what a host is that announces its shutdown and can be delayed. It imports
// the standard library alone, so a program that wants a host without the manager of package
// shutdown gets nothing else:
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
//		holder := source.Holder{Source: host, Delay: 30 * time.Second, OnShutdown: putAway}
//		if err := holder.Run(ctx); err != nil {
//			log.Fatal(err)
//		}
//	}
//
//	// putAway has until the deadline of the host. The machine goes down when it returns.
//	func putAway(ctx context.Context, event source.Event) {
//		log.Printf("the machine goes down (%s) at %v at the latest", event.Kind, event.Deadline)
//	}
//
// Packages shutdown/logind and shutdown/unixsocket have sources.
//
// # Concurrency properties
//
// All methods of a [Source], a [Session] and an [Adopter] may be called concurrently. The channel
// of [Session.Events] has one sender. A [Holder] calls its Source, and calls OnShutdown in a
// goroutine for which Run waits.
//
// # Failure modes
//
// A [Session] that is lost closes its events. [Holder.Run] then connects again, and so does a manager; other
// users do so by themselves. A lock outlives its session. One that the caller has not kept is held as long as
// the session.
//
// # Testing
//
// Package shutdown/shutdowntest has a source for the tests of embedders.
//
// # Stability
//
// Stable: from v0.1.0 on what is exported changes in a minor release only, and the changelog
// says how.
package source
