// Package source says what a host is that announces its shutdown and can be delayed. It imports
// the standard library alone, so a program that wants a host without the manager of package
// shutdown gets nothing else:
//
//	package main
//
//	import (
//		"context"
//		"errors"
//		"fmt"
//		"log"
//		"os"
//		"os/signal"
//		"time"
//
//		"github.com/kubegrace/kubegrace/shutdown/logind"
//		"github.com/kubegrace/kubegrace/shutdown/source"
//	)
//
//	func main() {
//		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
//		defer stop()
//		host, err := logind.New(logind.Options{})
//		if err != nil {
//			log.Fatal(err)
//		}
//		if err := hold(ctx, host); err != nil {
//			log.Fatal(err)
//		}
//	}
//
//	// hold delays the shutdown of a host until the work is put away.
//	func hold(ctx context.Context, host source.Source) error {
//		session, err := host.Connect(ctx)
//		if err != nil {
//			return err
//		}
//		defer session.Close()
//		if _, err := session.RequestDelay(ctx, 30*time.Second); err != nil && !errors.As(err, new(*source.DelayCappedError)) {
//			return err
//		}
//		lock, err := session.Inhibit(ctx)
//		if err != nil {
//			return err
//		}
//		defer lock.Close() // the host goes on
//		select {
//		case event, open := <-session.Events():
//			if !open {
//				return errors.New("the session is lost: connect again, since nobody announces a shutdown any more")
//			}
//			if !event.Cancelled {
//				fmt.Println("put the work away before", event.Deadline)
//			}
//		case <-ctx.Done():
//		}
//		return nil
//	}
//
// Packages shutdown/logind and shutdown/unixsocket have sources. Package shutdown has the same
// types under the same names.
//
// # Concurrency properties
//
// All methods of a [Source], a [Session] and an [Adopter] may be called concurrently. The channel
// of [Session.Events] has one sender.
//
// # Failure modes
//
// A [Session] that is lost closes its events; the user connects again. A lock outlives its session. One that the
// caller has not kept is held as long as the session.
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
